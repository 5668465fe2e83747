import { live } from '../api/live.svelte';
import { OneAtATime } from '../api/one-at-a-time';
import { call } from '../api/transport';
import type { Changes, Run, Shown } from '../api/types';

const RELOAD_MS = 400;

/** One run with all that is known of it, kept up to date. */
export class ShownRun {
  /** Everything, as last asked. */
  shown = $state.raw<Shown | null>(null);
  /** The run as it is now: the stream is ahead of the answer. */
  run = $state.raw<Run | null>(null);
  error = $state.raw<unknown>(null);
  isRemoved = $state(false);
  #loading = new OneAtATime(() => this.#load(), RELOAD_MS);

  constructor(readonly id: string) {}

  start(): () => void {
    void this.load();
    const ends = [
      live.onRuns((changes) => this.#changed(changes)),
      live.onReset(() => this.#loading.soon()),
    ];
    return () => {
      for (const end of ends) end();
      this.#loading.stop();
    };
  }

  load(): Promise<void> {
    return this.#loading.now();
  }

  async #load(): Promise<void> {
    try {
      const shown = await call<Shown>('show', { run: this.id });
      this.shown = shown;
      this.run = shown;
      this.error = null;
    } catch (error) {
      // What was known is worth more than a page that is empty because the connection broke.
      if (!this.shown) this.error = error;
    }
  }

  #changed({ runs, removed }: Changes): void {
    if (removed.includes(this.id)) this.isRemoved = true;
    const run = runs.find(({ id }) => id === this.id);
    if (!run) return;
    this.run = run;
    this.#loading.soon();
  }
}

import { live } from '../api/live.svelte';
import { OneAtATime } from '../api/one-at-a-time';
import { call } from '../api/transport';
import type { Changes, PhaseCounts, Run, ShownSweep, WhySweep } from '../api/types';

const RELOAD_MS = 600;

/** A sweep with its runs, kept up to date. */
export class SweepState {
  shown = $state.raw<ShownSweep | null>(null);
  runs = $state.raw<Run[]>([]);
  why = $state.raw<WhySweep | null>(null);
  error = $state.raw<unknown>(null);
  #loading = new OneAtATime(() => this.#load(), RELOAD_MS);

  readonly states = $derived.by((): PhaseCounts => {
    const counts: PhaseCounts = {};
    for (const { state } of this.runs) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  });

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
      const shown = await call<ShownSweep>('show', { run: this.id });
      this.shown = shown;
      this.runs = shown.runs;
      this.error = null;
      // Asked only where there is something to explain.
      const hasFailed = shown.runs.some(({ state }) => state === 'failed' || state === 'lost');
      this.why = hasFailed ? await call<WhySweep>('why', { run: this.id }) : null;
    } catch (error) {
      if (!this.shown) this.error = error;
    }
  }

  #changed({ runs }: Changes): void {
    const changed = new Map(runs.filter(({ sweep }) => sweep === this.id).map((run) => [run.id, run]));
    if (changed.size === 0) return;
    this.runs = this.runs.map((run) => changed.get(run.id) ?? run);
    this.#loading.soon();
  }
}

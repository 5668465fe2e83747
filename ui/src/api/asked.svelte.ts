import { isAborted } from './failure';

/**
 * The answer to a question that can be asked again. The answer before stays while a new one is on
 * its way, and if none comes.
 */
export class Asked<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<unknown>(null);
  isAsking = $state(false);
  /** When the answer came, in milliseconds since 1970. */
  at = $state<number | null>(null);
  #ask: (signal: AbortSignal) => Promise<T>;
  #latest: AbortController | undefined;

  constructor(ask: (signal: AbortSignal) => Promise<T>) {
    this.#ask = ask;
  }

  /** Asks, and gives up what was asked before. */
  async refresh(): Promise<void> {
    this.#latest?.abort();
    const mine = new AbortController();
    this.#latest = mine;
    this.isAsking = true;
    try {
      const value = await this.#ask(mine.signal);
      if (this.#latest !== mine) return;
      this.value = value;
      this.at = Date.now();
      this.error = null;
    } catch (error) {
      if (this.#latest === mine && !isAborted(error)) this.error = error;
    } finally {
      if (this.#latest === mine) this.isAsking = false;
    }
  }

  stop(): void {
    this.#latest?.abort();
    this.#latest = undefined;
    this.isAsking = false;
  }
}

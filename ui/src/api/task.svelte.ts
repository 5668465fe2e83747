import { isAborted } from './failure';
import { call } from './transport';
import type { Progress } from './types';

/** Something that a verb does and that takes a while: it can be watched, and given up. */
export class Task<T> {
  isRunning = $state(false);
  wasCancelled = $state(false);
  progress = $state.raw<Progress | null>(null);
  notes = $state.raw<string[]>([]);
  error = $state.raw<unknown>(null);
  answer = $state.raw<T | null>(null);
  #controller: AbortController | undefined;

  /** The answer, or null if there is none. */
  async run(name: string, args: object, onPart?: (part: unknown) => void): Promise<T | null> {
    this.cancel();
    const mine = new AbortController();
    this.#controller = mine;
    this.reset();
    this.isRunning = true;
    try {
      const answer = await call<T>(name, args, {
        onNote: (note) => (this.notes = [...this.notes, note.replace(/^ *hint: /, '').trim()]),
        onProgress: (progress) => (this.progress = progress),
        onPart: onPart ?? (() => undefined),
        signal: mine.signal,
      });
      if (this.#controller === mine) this.answer = answer;
      return answer;
    } catch (error) {
      if (this.#controller !== mine) return null;
      if (isAborted(error)) this.wasCancelled = true;
      else this.error = error;
      return null;
    } finally {
      if (this.#controller === mine) this.isRunning = false;
    }
  }

  cancel(): void {
    this.#controller?.abort();
  }

  reset(): void {
    this.wasCancelled = false;
    this.progress = null;
    this.notes = [];
    this.error = null;
    this.answer = null;
  }
}

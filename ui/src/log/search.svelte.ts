import { isAborted } from '../api/failure';
import { call } from '../api/transport';
import type { LogRef, Matches } from '../api/types';

export type Sought = { pattern: string; regex: boolean; case: boolean };

const TYPING_MS = 200;

/** The lines of one log that match what is sought. */
export class LogSearch {
  matches = $state.raw<Matches | null>(null);
  error = $state.raw<unknown>(null);
  isBusy = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #call: AbortController | undefined;

  /** Searches once nobody types any more. A later search ends an earlier one. */
  seek(log: LogRef, sought: Sought, onfound: (matches: Matches) => void): () => void {
    clearTimeout(this.#timer);
    this.#call?.abort();
    this.matches = null;
    this.error = null;
    this.isBusy = sought.pattern !== '';
    if (!this.isBusy) return () => undefined;
    const attempt = new AbortController();
    this.#call = attempt;
    this.#timer = setTimeout(() => void this.#run(log, sought, attempt, onfound), TYPING_MS);
    return () => {
      clearTimeout(this.#timer);
      attempt.abort();
    };
  }

  async #run(
    log: LogRef,
    sought: Sought,
    attempt: AbortController,
    onfound: (matches: Matches) => void,
  ): Promise<void> {
    try {
      const answer = await call<Matches>('logs.search', { ...log, ...sought }, attempt);
      this.matches = answer;
      this.isBusy = false;
      onfound(answer);
    } catch (error) {
      if (isAborted(error)) return;
      this.isBusy = false;
      this.error = error;
    }
  }
}

/** The match behind a line, or before it; around the end to the beginning. */
export function nextMatch(lines: number[], line: number, step: 1 | -1): number | undefined {
  if (step === 1) return lines.find((match) => match > line) ?? lines[0];
  return lines.findLast((match) => match < line) ?? lines.at(-1);
}

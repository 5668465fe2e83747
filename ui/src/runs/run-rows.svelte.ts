import { isAborted } from '../api/failure';
import { call } from '../api/transport';
import type { PhaseCounts, Row, Run, RunsWindow } from '../api/types';
import { WindowCache } from '../list/window-cache';
import type { Query } from './filter';
import { idOf } from './row';

export const WINDOW_ROWS = 100;
const MOST_WINDOWS = 40;
const MOST_CALLS = 2;

/**
 * One list of runs, of which the windows are here that somebody looked at lately. A window that may
 * be out of date is shown until it has been read again.
 */
export class RunRows {
  total = $state(0);
  states = $state.raw<PhaseCounts>({});
  isLoaded = $state(false);
  error = $state.raw<unknown>(null);
  /** Called after a window has come. */
  onload: (() => void) | undefined;

  #version = $state(0);
  #cache = new WindowCache<Row>(WINDOW_ROWS, MOST_WINDOWS);
  #fresh = new Set<number>();
  #loading = new Set<number>();
  #wanted = { first: 0, last: 0 };
  #generation = 0;
  /** The place of the history that all answers are of, `null` if they are of several. */
  #readAt: string | null | undefined;
  /** The place that is asked for. */
  #asOf: string | undefined;
  #end = new AbortController();

  constructor(readonly query: Query) {}

  /** The row, if it is here. Who reads it is told when it changes. */
  at(index: number): Row | undefined {
    void this.#version;
    return this.#cache.get(index);
  }

  /** Where a run or a sweep is, if its window is here. */
  find(id: string): number | undefined {
    for (const [number, rows] of this.#cache.windows()) {
      const at = rows.findIndex((row) => idOf(row) === id);
      if (at >= 0) return number * WINDOW_ROWS + at;
    }
    return undefined;
  }

  need(first: number, last: number): void {
    this.#wanted = { first: Math.max(0, first), last: Math.max(first, last) };
    this.#cache.need(this.#wanted.first, this.#wanted.last);
    this.#load();
  }

  /**
   * Reads again what is looked at; the rest when it is looked at next. With a place of the history,
   * only what was read at another one.
   */
  refresh(cursor?: string): void {
    this.#asOf = cursor;
    if (cursor !== undefined && cursor === this.#readAt && this.#loading.size === 0) return;
    this.#generation += 1;
    this.#fresh.clear();
    this.#load();
  }

  /** Puts changed runs where their former selves are. Their order is right after a refresh. */
  replace(runs: Run[]): void {
    const changed = new Map(runs.map((run) => [run.id, run]));
    let hasChanged = false;
    for (const [, rows] of this.#cache.windows()) {
      rows.forEach((row, at) => {
        const run = 'run' in row ? changed.get(row.run.id) : undefined;
        if (!run) return;
        rows[at] = { run };
        hasChanged = true;
      });
    }
    if (hasChanged) this.#version += 1;
  }

  end(): void {
    this.#end.abort();
  }

  #load(): void {
    if (this.#end.signal.aborted) return;
    const first = this.#cache.windowOf(this.#wanted.first);
    const last = this.#cache.windowOf(this.#wanted.last);
    for (let number = first; number <= last; number++) {
      if (this.#loading.size >= MOST_CALLS) return;
      const isBehind = this.isLoaded && number > 0 && number * WINDOW_ROWS >= this.total;
      if (isBehind || this.#fresh.has(number) || this.#loading.has(number)) continue;
      void this.#read(number);
    }
  }

  async #read(number: number): Promise<void> {
    const generation = this.#generation;
    this.#loading.add(number);
    try {
      const { filter, sort, fold } = this.query;
      const args = { filter, sort, fold, offset: number * WINDOW_ROWS, limit: WINDOW_ROWS };
      const answer = await call<RunsWindow>('runs.page', args, { signal: this.#end.signal });
      this.#put(number, answer);
      const isOther = this.#readAt !== undefined && this.#readAt !== answer.cursor;
      this.#readAt = isOther ? null : answer.cursor;
      const isAsOf = this.#asOf !== undefined && answer.cursor === this.#asOf;
      if (generation === this.#generation || isAsOf) this.#fresh.add(number);
    } catch (error) {
      this.#loading.delete(number);
      // Asked again when the list is scrolled, or when the stream is back and says that all is new.
      if (!isAborted(error)) this.error = error;
      return;
    }
    this.#loading.delete(number);
    this.onload?.();
    this.#load();
  }

  #put(number: number, answer: RunsWindow): void {
    const before = this.#cache.window(number);
    // A row that is as it was stays the same object, so that nothing is drawn again for it.
    const rows = answer.rows.map((row, at) => {
      const old = before?.[at];
      return old && JSON.stringify(old) === JSON.stringify(row) ? old : row;
    });
    this.#cache.put(number, rows);
    for (const known of this.#fresh) if (!this.#cache.has(known)) this.#fresh.delete(known);
    this.total = answer.total;
    this.states = answer.states;
    this.error = null;
    this.isLoaded = true;
    this.#version += 1;
  }
}

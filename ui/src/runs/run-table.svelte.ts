import { SvelteMap } from 'svelte/reactivity';
import { live } from '../api/live.svelte';
import { call } from '../api/transport';
import type { Changes, PhaseCounts, Row, RunsWindow } from '../api/types';
import { EVERYTHING, NEWEST_FIRST, type Query } from './filter';
import { flatTotal, locate, type Unfolded } from './flat';
import { idOf } from './row';
import { RunRows } from './run-rows.svelte';

/** At most four times a second, and never faster than the list can be read. */
const REFRESH_MS = 250;
const REFRESH_PER_READ = 3;

export type TableRow = { row: Row; isChild: boolean };
type Open = { id: string; at: number | undefined; rows: RunRows };

/** The list that the page shows: its rows, unfolded sweeps among them, kept up to date. */
export class RunTable {
  rows = $state.raw(new RunRows({ filter: EVERYTHING, sort: NEWEST_FIRST, fold: true }));
  /** The number of runs in each state, whatever states are filtered for. */
  counts = $state.raw<PhaseCounts>({});
  /** Called when other rows are shown than before, and when rows were put above. */
  onswap: (() => void) | undefined;

  #open = new SvelteMap<string, Open>();
  #next: RunRows | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #readMs = 0;

  #unfolded = $derived.by((): (Unfolded & { id: string })[] => {
    const known: (Unfolded & { id: string })[] = [];
    for (const { id, at, rows } of this.#open.values()) {
      if (at !== undefined) known.push({ id, at, count: rows.total });
    }
    return known.sort((one, other) => one.at - other.at);
  });
  total = $derived(flatTotal(this.rows.total, this.#unfolded));

  /** Follows the stream. Returns what ends it. */
  start(): () => void {
    const ends = [live.onRuns((changes) => this.#changed(changes)), live.onReset((cursor) => this.#refresh(cursor))];
    return () => {
      for (const end of ends) end();
      clearTimeout(this.#timer);
      this.#next?.end();
      this.rows.end();
      for (const { rows } of this.#open.values()) rows.end();
    };
  }

  /** Shows another list as soon as its first rows are here; until then the former one stays. */
  show(query: Query): void {
    this.#next?.end();
    const next = new RunRows(query);
    this.#next = next;
    const began = performance.now();
    next.onload = () => {
      if (this.#next !== next) return;
      this.#readMs = performance.now() - began;
      this.#next = undefined;
      if (this.rows !== next) this.rows.end();
      for (const { rows } of this.#open.values()) rows.end();
      this.#open.clear();
      this.rows = next;
      next.onload = () => this.#loaded();
      this.onswap?.();
    };
    next.need(0, 0);
    // If nothing comes there is an error, and the list that failed is the one to show it.
    if (!this.rows.isLoaded) this.rows = next;
    this.#count(query);
  }

  at(index: number): TableRow | undefined {
    const { at, child } = locate(index, this.#unfolded);
    if (child === undefined) {
      const row = this.rows.at(at);
      return row && { row, isChild: false };
    }
    const sweep = this.#unfolded.find((unfolded) => unfolded.at === at);
    const row = sweep && this.#open.get(sweep.id)?.rows.at(child);
    return row && { row, isChild: true };
  }

  need(first: number, last: number): void {
    const begin = locate(first, this.#unfolded).at;
    const end = locate(last, this.#unfolded).at;
    this.rows.need(begin, Math.max(begin, end));
    let before = 0;
    for (const { id, at, count } of this.#unfolded) {
      const start = at + before + 1;
      before += count;
      if (start <= last && start + count > first) {
        this.#open.get(id)?.rows.need(Math.max(0, first - start), Math.min(count - 1, last - start));
      }
    }
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Shows the runs of a sweep below its row, or no longer. */
  toggle(id: string): void {
    const open = this.#open.get(id);
    if (open) {
      open.rows.end();
      this.#open.delete(id);
      return;
    }
    const { filter, sort } = this.rows.query;
    const rows = new RunRows({ filter: { ...filter, sweep: id }, sort, fold: false });
    this.#open.set(id, { id, at: this.rows.find(id), rows });
    rows.need(0, 0);
  }

  #changed(changes: Changes): void {
    this.rows.replace(changes.runs);
    for (const { rows } of this.#open.values()) rows.replace(changes.runs);
    this.#timer ??= setTimeout(() => this.#refresh(), Math.max(REFRESH_MS, this.#readMs * REFRESH_PER_READ));
  }

  #refresh(cursor?: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.rows.refresh(cursor);
    for (const { rows } of this.#open.values()) rows.refresh();
    this.#count(this.rows.query);
  }

  /** Rows may have moved: an unfolded sweep is where its row is now. */
  #loaded(): void {
    for (const open of this.#open.values()) {
      const at = this.rows.find(open.id);
      const isGone = at === undefined && open.at !== undefined && this.#isOther(open.at, open.id);
      if (at !== undefined ? at !== open.at : isGone) this.#open.set(open.id, { ...open, at });
    }
  }

  #isOther(at: number, id: string): boolean {
    const row = this.rows.at(at);
    return row !== undefined && idOf(row) !== id;
  }

  /** The list itself counts only what its filter lets through. */
  #count({ filter, sort }: Query): void {
    const args = { filter: { ...filter, states: [] }, sort, fold: false, offset: 0, limit: 1 };
    call<RunsWindow>('runs.page', args)
      .then((answer) => (this.counts = answer.states))
      .catch(() => undefined);
  }
}

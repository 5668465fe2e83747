import { isAborted } from '../api/failure';
import { live } from '../api/live.svelte';
import { call } from '../api/transport';
import type { Lines, LogRef } from '../api/types';
import { WindowCache } from '../list/window-cache';
import { lastState } from './line';

const WINDOW_LINES = 256;
const MOST_WINDOWS = 80;
const MOST_CALLS = 2;
/** Several parts in one frame are drawn once. */
const GATHER_MS = 30;
/** More than this at once is not taken apart here: what is in view is read instead. */
const MOST_GATHERED_BYTES = 2_000_000;
/** A progress bar that never ends its line is folded now and then, so that it does not pile up. */
const FOLD_FROM = 8_192;

type Part = { bytes: Uint8Array; offset: number };

/**
 * One log: as many windows of lines as are looked at, and its end, which grows with the stream. The
 * bytes of the stream go on exactly where the windows that were read end.
 */
export class LogLines {
  total = $state(0);
  bytes = $state(0);
  isLoaded = $state(false);
  error = $state.raw<unknown>(null);
  /** The length to which the job cut its log, if it did. */
  cutTo = $state<number | null>(null);

  #version = $state(0);
  #isOpen = false;
  #cache = new WindowCache<string>(WINDOW_LINES, MOST_WINDOWS);
  #shortened = new Set<number>();
  #stale = new Set<number>();
  #loading = new Set<number>();
  #wanted = { first: 0, last: 0 };
  #decoder = new TextDecoder();
  #parts: Part[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #end = new AbortController();

  constructor(readonly log: LogRef) {}

  /** Reads where the log ends and follows it from there. Returns what ends it. */
  start(): () => void {
    let unfollow: (() => void) | undefined;
    const begin = async () => {
      if (!(await this.#readEnd()) || this.#end.signal.aborted) return;
      unfollow = live.follow(
        { ...this.log, offset: this.bytes },
        {
          onPart: (bytes, offset) => this.#gather({ bytes, offset }),
          onCut: (length) => void this.#cut(length),
        },
      );
    };
    void begin();
    return () => {
      this.#end.abort();
      clearTimeout(this.#timer);
      unfollow?.();
    };
  }

  at(line: number): string | undefined {
    void this.#version;
    return this.#cache.get(line);
  }

  need(first: number, last: number): void {
    this.#wanted = { first: Math.max(0, first), last: Math.max(first, last) };
    this.#cache.need(this.#wanted.first, this.#wanted.last);
    this.#load();
  }

  async #readEnd(): Promise<boolean> {
    try {
      this.#takeEnd(await this.#read({ end: 1 }));
      this.error = null;
      this.isLoaded = true;
      this.#load();
      return true;
    } catch (error) {
      if (!isAborted(error)) this.error = error;
      return false;
    }
  }

  #read(from: { end: number } | { line: number }): Promise<Lines> {
    const args = { ...this.log, from, lines: WINDOW_LINES };
    return call<Lines>('logs.read', args, { signal: this.#end.signal });
  }

  #takeEnd(answer: Lines): void {
    this.total = answer.total;
    this.bytes = answer.bytes;
    this.#isOpen = answer.is_open;
    this.#decoder = new TextDecoder();
  }

  #load(): void {
    if (!this.isLoaded || this.#end.signal.aborted) return;
    const first = this.#cache.windowOf(this.#wanted.first);
    const last = this.#cache.windowOf(Math.min(this.#wanted.last, this.total - 1));
    for (let number = first; number <= last; number++) {
      if (this.#loading.size >= MOST_CALLS) return;
      const isHere = this.#cache.has(number) && !this.#stale.has(number);
      if (!isHere && !this.#loading.has(number)) void this.#readWindow(number);
    }
  }

  async #readWindow(number: number): Promise<void> {
    this.#loading.add(number);
    this.#stale.delete(number);
    try {
      this.#put(number, await this.#read({ line: number * WINDOW_LINES }));
    } catch (error) {
      this.#loading.delete(number);
      if (!isAborted(error)) this.error = error;
      return;
    }
    this.#loading.delete(number);
    this.#load();
  }

  #put(number: number, answer: Lines): void {
    this.error = null;
    const hasEnd = answer.first + answer.lines.length >= answer.total;
    if (hasEnd && answer.bytes < this.bytes) {
      // The log has grown since: lines of the stream are missing in this answer.
      this.#stale.add(number);
      return;
    }
    if (hasEnd && answer.bytes > this.bytes) this.#takeEnd(answer);
    this.#cache.put(number, answer.lines.slice());
    for (const line of answer.cut ?? []) this.#shortened.add(line);
    this.#version += 1;
  }

  /** Whether a line is longer than what the program sends of it. */
  isShortened(number: number): boolean {
    void this.#version;
    return this.#shortened.has(number);
  }

  #gather(part: Part): void {
    this.#parts.push(part);
    this.#timer ??= setTimeout(() => this.#append(), GATHER_MS);
  }

  #append(): void {
    this.#timer = undefined;
    const parts = this.#parts;
    this.#parts = [];
    const bytes = parts.reduce((sum, part) => sum + part.bytes.length, 0);
    const hasGap = parts.some(({ offset }, at) => {
      const before = parts[at - 1];
      return offset > (before ? before.offset + before.bytes.length : this.bytes);
    });
    if (hasGap || bytes > MOST_GATHERED_BYTES) {
      this.#forgetEnd();
      void this.#readEnd();
      return;
    }
    for (const part of parts) this.#appendPart(part);
    this.#version += 1;
    this.#load();
  }

  #appendPart({ bytes, offset }: Part): void {
    const known = this.bytes - offset;
    if (known >= bytes.length) return;
    this.bytes = offset + bytes.length;
    const text = this.#decoder.decode(known > 0 ? bytes.subarray(known) : bytes, { stream: true });
    const lines = text.split('\n');
    // Behind the last line end is the beginning of a line, or nothing.
    const open = lines.pop() ?? '';
    for (const line of lines) this.#addLine(line, false);
    if (open) this.#addLine(open, true);
  }

  #addLine(text: string, isOpen: boolean): void {
    const continues = this.#isOpen;
    this.#isOpen = isOpen;
    if (!continues) this.total += 1;
    const line = this.total - 1;
    const number = this.#cache.windowOf(line);
    const at = line % WINDOW_LINES;
    const items = this.#cache.window(number);
    if (continues && items && items.length === at + 1) {
      const whole = (items[at] ?? '') + text;
      items[at] = whole.length > FOLD_FROM ? lastState(whole) : whole;
    } else if (!continues && items?.length === at) items.push(text);
    else if (!continues && at === 0) this.#cache.put(number, [text]);
    // Any other window is not here, or not whole: it is read when it is looked at.
    else if (items) this.#stale.add(number);
  }

  /** The last window may lack lines: it is read again. */
  #forgetEnd(): void {
    for (const [number, lines] of this.#cache.windows()) {
      if (lines.length < WINDOW_LINES) this.#stale.add(number);
    }
  }

  async #cut(length: number): Promise<void> {
    this.#parts = [];
    this.#cache.clear();
    this.#stale.clear();
    this.cutTo = length;
    await this.#readEnd();
    this.#version += 1;
  }
}

/**
 * Items of a long list, in windows of equal size. A bounded number of windows is kept; the one that
 * was looked at longest ago goes first.
 */
export class WindowCache<T> {
  /** In the order in which they were last looked at. */
  #windows = new Map<number, T[]>();

  constructor(
    readonly size: number,
    readonly most: number,
  ) {}

  windowOf(index: number): number {
    return Math.floor(index / this.size);
  }

  /** The item, if its window is here. */
  get(index: number): T | undefined {
    return this.#windows.get(this.windowOf(index))?.[index % this.size];
  }

  window(number: number): T[] | undefined {
    return this.#windows.get(number);
  }

  has(number: number): boolean {
    return this.#windows.has(number);
  }

  put(number: number, items: T[]): void {
    this.#windows.delete(number);
    this.#windows.set(number, items);
    for (const oldest of this.#windows.keys()) {
      if (this.#windows.size <= this.most) break;
      this.#windows.delete(oldest);
    }
  }

  /** Marks the windows of a range as looked at, and returns those that are not here. */
  need(first: number, last: number): number[] {
    const missing: number[] = [];
    for (let number = this.windowOf(first); number <= this.windowOf(last); number++) {
      const items = this.#windows.get(number);
      if (!items) missing.push(number);
      else {
        this.#windows.delete(number);
        this.#windows.set(number, items);
      }
    }
    return missing;
  }

  delete(number: number): void {
    this.#windows.delete(number);
  }

  clear(): void {
    this.#windows.clear();
  }

  windows(): IterableIterator<[number, T[]]> {
    return this.#windows.entries();
  }
}

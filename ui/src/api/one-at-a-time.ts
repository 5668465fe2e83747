/**
 * Does something again whenever it is asked for, but never twice at once: an answer that is late
 * must not take the place of a newer one. What is asked for meanwhile is done afterwards, once.
 */
export class OneAtATime {
  #isBusy = false;
  #isWanted = false;
  #isStopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly act: () => Promise<void>,
    readonly pauseMs: number,
  ) {}

  async now(): Promise<void> {
    if (this.#isBusy) {
      this.#isWanted = true;
      return;
    }
    this.#isBusy = true;
    try {
      await this.act();
    } finally {
      this.#isBusy = false;
    }
    if (!this.#isWanted) return;
    this.#isWanted = false;
    this.soon();
  }

  /** After a pause, in which more may happen. */
  soon(): void {
    if (this.#isStopped) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.now();
    }, this.pauseMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}

import { NotLetIn, Unreachable } from './failure';
import { Follows, type FollowHandlers } from './follows';
import { pauseAfter } from './pauses';
import { transport } from './transport';
import type { Changes, ClusterNews, Item, LogFrom } from './types';
import { clock } from '../words/clock.svelte';

/**
 * `gone`: nothing has answered for a while, so the program has probably ended. `not_let_in`: it
 * does not know our token. `paused`: nobody looks at the page.
 */
export type Status = 'connecting' | 'open' | 'reconnecting' | 'gone' | 'not_let_in' | 'paused';

/** After so many failed tries in a row (about four seconds) the program is taken for ended. */
const TRIES_UNTIL_GONE = 4;
/** A stream that says nothing for so long, not even that it is alive, is broken. */
const SILENCE_MS = 60_000;
/** A browser has few connections for each program. A tab that nobody sees gives its own back. */
const HIDDEN_MS = 60_000;

/** Why an attempt was ended by us. */
const HIDDEN = 'hidden';
const FOLLOW = 'follow';

type Handler<T> = (value: T) => void;

/** The one stream of events, taken up again wherever it breaks, and what the page knows from it. */
export class Live {
  status = $state<Status>('connecting');
  clusters = $state<Record<string, ClusterNews>>({});

  #cursor: string | undefined;
  #stream: string | undefined;
  #follows = new Follows();
  #onRuns = new Set<Handler<Changes>>();
  #onReset = new Set<Handler<string>>();
  #attempt: AbortController | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #isStopped = true;
  #hasUnsentFollows = false;

  start(): void {
    this.#isStopped = false;
    void this.#connect();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#silence);
    this.#attempt?.abort();
  }

  /** Does not wait for the end of a pause. */
  retryNow(): void {
    if (this.#isStopped || this.#attempt) return;
    clearTimeout(this.#retry);
    void this.#connect();
  }

  /** Called with every change of runs. Returns what ends it. */
  onRuns(handler: Handler<Changes>): () => void {
    this.#onRuns.add(handler);
    return () => this.#onRuns.delete(handler);
  }

  /**
   * Called when changes may have been missed, with the place that the stream goes on from: whoever
   * shows a list of another place asks for it again.
   */
  onReset(handler: Handler<string>): () => void {
    this.#onReset.add(handler);
    return () => this.#onReset.delete(handler);
  }

  /** Follows a log from an offset, over any break. Returns what ends it. */
  follow(from: LogFrom, handlers: FollowHandlers): () => void {
    const end = this.#follows.add(from, handlers);
    this.#sendFollows();
    return () => {
      end();
      this.#sendFollows();
    };
  }

  receive(item: Item): void {
    this.#heard();
    switch (item.item) {
      case 'begun': {
        const isFirst = this.#cursor === undefined;
        this.#stream = item.stream;
        this.#cursor = item.cursor;
        // A list that was read before the stream began may miss what happened in between.
        if (isFirst) this.#tellReset(item.cursor);
        if (this.#hasUnsentFollows) this.#sendFollows();
        break;
      }
      case 'reset':
        this.#cursor = item.cursor;
        this.#tellReset(item.cursor);
        break;
      case 'runs':
        this.#cursor = item.cursor;
        for (const handler of this.#onRuns) handler(item);
        break;
      case 'log':
        this.#follows.receive(item);
        break;
      case 'log_cut':
        this.#follows.cut(item);
        break;
      case 'clusters':
        for (const cluster of item.clusters) this.clusters[cluster.name] = cluster;
        break;
      case 'alive':
        clock.isNow(item.now);
        break;
    }
  }

  async #connect(): Promise<void> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#hasUnsentFollows = false;
    this.#watchSilence();
    let error: unknown;
    try {
      const args = { no_runs: false, logs: this.#follows.all(), ...this.#from() };
      await transport().stream('events', args, {
        onItem: (item) => this.receive(item),
        signal: attempt.signal,
      });
    } catch (thrown) {
      error = thrown;
    }
    clearTimeout(this.#silence);
    this.#attempt = undefined;
    this.#stream = undefined;
    if (this.#isStopped) return;
    if (error instanceof NotLetIn) {
      this.status = 'not_let_in';
      return;
    }
    if (attempt.signal.reason === HIDDEN) {
      this.status = 'paused';
      return;
    }
    if (attempt.signal.reason === FOLLOW) return void this.#connect();
    this.#failures += 1;
    const isGone = error instanceof Unreachable && this.#failures >= TRIES_UNTIL_GONE;
    this.status = isGone ? 'gone' : this.status === 'gone' ? 'gone' : 'reconnecting';
    this.#retry = setTimeout(() => void this.#connect(), pauseAfter(this.#failures));
  }

  #from(): { cursor?: string } {
    return this.#cursor === undefined ? {} : { cursor: this.#cursor };
  }

  #heard(): void {
    this.#failures = 0;
    this.status = 'open';
    this.#watchSilence();
  }

  #watchSilence(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#attempt?.abort(), SILENCE_MS);
  }

  #tellReset(cursor: string): void {
    for (const handler of this.#onReset) handler(cursor);
  }

  #sendFollows(): void {
    // The stream has no name yet: its first item will tell it.
    this.#hasUnsentFollows = this.#stream === undefined;
    if (this.#hasUnsentFollows) return;
    const args = { stream: this.#stream, logs: this.#follows.all() };
    transport()
      .call('events.logs', args)
      .catch(() => this.#attempt?.abort(FOLLOW));
  }

  /** Gives the connection back while the page is hidden, and goes on when it is seen again. */
  watchVisibility(page: Document): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    page.addEventListener('visibilitychange', () => {
      clearTimeout(timer);
      if (page.hidden) timer = setTimeout(() => this.#attempt?.abort(HIDDEN), HIDDEN_MS);
      else this.retryNow();
    });
  }
}

export const live = new Live();

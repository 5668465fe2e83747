import type { LogCut, LogFrom, LogPart, LogRef } from './types';

export type FollowHandlers = {
  /** Bytes behind those that came before: none is missing and none comes twice. */
  onPart: (bytes: Uint8Array, offset: number) => void;
  /** The job itself made its log shorter. */
  onCut: (length: number) => void;
};

type Follow = { from: LogFrom; handlers: Set<FollowHandlers> };

export function logKey(log: LogRef): string {
  const source = 'rank' in log.source ? `rank ${log.source.rank}` : `set-up ${log.source.set_up}`;
  return `${log.run} ${log.attempt} ${source}`;
}

/** The logs that the stream follows, each with the offset that comes next. */
export class Follows {
  #follows = new Map<string, Follow>();

  /**
   * Returns what ends it. A second view of one log gets what comes from now on: the stream does not
   * go back, so a view that finds a gap reads it.
   */
  add(from: LogFrom, handlers: FollowHandlers): () => void {
    const key = logKey(from);
    const follow = this.#follows.get(key) ?? { from: { ...from }, handlers: new Set() };
    follow.handlers.add(handlers);
    this.#follows.set(key, follow);
    return () => {
      follow.handlers.delete(handlers);
      if (follow.handlers.size === 0 && this.#follows.get(key) === follow) {
        this.#follows.delete(key);
      }
    };
  }

  /** What a call asks for: every log, from the byte that is wanted next. */
  all(): LogFrom[] {
    return [...this.#follows.values()].map(({ from }) => ({ ...from }));
  }

  receive(part: LogPart): void {
    const follow = this.#follows.get(logKey(part));
    if (!follow || part.offset + part.length <= follow.from.offset) return;
    const bytes = bytesOf(part).subarray(Math.max(0, follow.from.offset - part.offset));
    const offset = Math.max(part.offset, follow.from.offset);
    follow.from.offset = part.offset + part.length;
    for (const handlers of follow.handlers) handlers.onPart(bytes, offset);
  }

  cut(cut: LogCut): void {
    const follow = this.#follows.get(logKey(cut));
    if (!follow) return;
    follow.from.offset = cut.length;
    for (const handlers of follow.handlers) handlers.onCut(cut.length);
  }
}

const encoder = new TextEncoder();

function bytesOf(part: LogPart): Uint8Array {
  if (part.text !== undefined) return encoder.encode(part.text);
  const binary = atob(part.base64 ?? '');
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

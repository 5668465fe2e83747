import type { Item, Progress } from './types';

export type CallHandlers = {
  onNote?: (note: string) => void;
  onProgress?: (progress: Progress) => void;
  onPart?: (part: unknown) => void;
  signal?: AbortSignal;
};

export type StreamHandlers = { onItem: (item: Item) => void; signal?: AbortSignal };

/** Every request of the page goes through one of these. Errors are those of `failure.ts`. */
export interface Transport {
  call<T>(call: string, args?: object, handlers?: CallHandlers): Promise<T>;
  /** Resolves when the other side ends the stream. */
  stream(call: string, args: object, handlers: StreamHandlers): Promise<void>;
  /** Saves what the call `download` gave an address for. */
  save(path: string): void;
}

let current: Transport | undefined;

/** Set once, before the first component exists; a test sets its own. */
export function useTransport(transport: Transport): void {
  current = transport;
}

export function transport(): Transport {
  if (!current) throw new Error('no transport is set');
  return current;
}

export function call<T>(name: string, args?: object, handlers?: CallHandlers): Promise<T> {
  return transport().call<T>(name, args, handlers);
}

import { aborted } from '../../src/api/failure';
import type { CallHandlers, StreamHandlers, Transport } from '../../src/api/transport';
import { useTransport } from '../../src/api/transport';
import type { Item } from '../../src/api/types';

type Opened = {
  args: { cursor?: string; logs: object[] };
  send: (item: Item) => void;
  end: () => void;
  fail: (error: unknown) => void;
};

/** A transport whose answers a test gives, and whose streams it holds in its hand. */
export class TestTransport implements Transport {
  calls: { call: string; args: unknown }[] = [];
  streams: Opened[] = [];
  answers: Record<string, (args: never) => unknown> = {};
  saved: string[] = [];

  constructor() {
    useTransport(this);
  }

  async call<T>(call: string, args: object = {}, handlers: CallHandlers = {}): Promise<T> {
    this.calls.push({ call, args });
    const answer = this.answers[call];
    if (!answer) throw new Error(`no answer to ${call}`);
    const value = await answer(args as never);
    if (handlers.signal?.aborted) throw aborted();
    return value as T;
  }

  stream(_call: string, args: object, { onItem, signal }: StreamHandlers): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(aborted()));
      this.streams.push({ args: args as Opened['args'], send: onItem, end: resolve, fail: reject });
    });
  }

  save(path: string): void {
    this.saved.push(path);
  }

  get last(): Opened {
    const last = this.streams.at(-1);
    if (!last) throw new Error('no stream is open');
    return last;
  }
}

/** Lets everything that is due now happen. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

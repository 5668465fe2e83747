import { aborted } from './failure';
import { receive } from './reply';
import type { CallHandlers, StreamHandlers, Transport } from './transport';
import type { Item, Reply } from './types';

/** What VS Code puts into a webview. */
export type Host = { postMessage(message: unknown): void };

type Pending = {
  handlers: CallHandlers & { onItem?: (item: Item) => void };
  resolve: (value: unknown) => void;
  reject: (reason: unknown) => void;
};

/**
 * Calls as messages to the extension around a webview, which passes them to `tow api --stdio`.
 * A webview opens no connection itself, so this works where the extension is on another machine.
 */
export class WebviewTransport implements Transport {
  #host: Host;
  #next = 1;
  #pending = new Map<number, Pending>();

  constructor(host: Host, messages: EventTarget = window) {
    this.#host = host;
    messages.addEventListener('message', (event) => {
      this.#receive((event as MessageEvent).data as { id?: number } & Reply);
    });
  }

  call<T>(call: string, args: object = {}, handlers: CallHandlers = {}): Promise<T> {
    return this.#send(call, args, handlers) as Promise<T>;
  }

  async stream(call: string, args: object, handlers: StreamHandlers): Promise<void> {
    await this.#send(call, args, handlers);
  }

  save(path: string): void {
    this.#host.postMessage({ save: path });
  }

  #send(call: string, args: object, handlers: Pending['handlers']): Promise<unknown> {
    const { signal } = handlers;
    if (signal?.aborted) return Promise.reject(aborted());
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { handlers, resolve, reject });
      signal?.addEventListener('abort', () => {
        if (!this.#pending.delete(id)) return;
        this.#host.postMessage({ cancel: id });
        reject(aborted());
      });
      this.#host.postMessage({ id, call, args });
    });
  }

  #receive(message: { id?: number } & Reply): void {
    const pending = message?.id === undefined ? undefined : this.#pending.get(message.id);
    if (!pending || message.id === undefined) return;
    try {
      const finished = receive(message, pending.handlers);
      if (!finished) return;
      this.#pending.delete(message.id);
      pending.resolve(finished.done);
    } catch (error) {
      this.#pending.delete(message.id);
      pending.reject(error);
    }
  }
}

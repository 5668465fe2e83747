import { aborted, CallFailed, isAborted, NotLetIn, Unreachable } from './failure';
import { receive, type Finished } from './reply';
import { SseReader } from './sse';
import type { CallHandlers, StreamHandlers, Transport } from './transport';
import type { Failure, Item, Reply } from './types';

type AllHandlers = CallHandlers & { onItem?: (item: Item) => void };

/** Calls over HTTP, in a browser's tab. */
export class HttpTransport implements Transport {
  #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  async call<T>(call: string, args: object = {}, handlers: CallHandlers = {}): Promise<T> {
    const isWatched = handlers.onNote ?? handlers.onProgress ?? handlers.onPart;
    if (isWatched) {
      const finished = await this.#replies(call, args, handlers);
      if (!finished) throw new Unreachable(call);
      return finished.done as T;
    }
    const response = await this.#post(call, args, 'application/json', handlers.signal);
    return (await readJson(response)) as T;
  }

  async stream(call: string, args: object, handlers: StreamHandlers): Promise<void> {
    await this.#replies(call, args, handlers);
  }

  save(path: string): void {
    const link = document.createElement('a');
    link.href = path;
    link.download = '';
    link.click();
  }

  async #replies(
    call: string,
    args: object,
    handlers: AllHandlers,
  ): Promise<Finished | undefined> {
    const { signal } = handlers;
    const response = await this.#post(call, args, 'text/event-stream', signal);
    if (!response.body) throw new Unreachable(call);
    const reader = response.body.getReader();
    const events = new SseReader();
    for (;;) {
      const chunk = await reader.read().catch(() => {
        throw signal?.aborted ? aborted() : new Unreachable(call);
      });
      if (chunk.done) return undefined;
      for (const data of events.push(chunk.value)) {
        const finished = receive(JSON.parse(data) as Reply, handlers);
        if (finished) return finished;
      }
    }
  }

  async #post(call: string, args: object, accept: string, signal?: AbortSignal) {
    const response = await fetch(`api/${call}`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-Towline-Token': this.#token,
        Accept: accept,
      },
      body: JSON.stringify(args),
      cache: 'no-store',
      signal: signal ?? null,
    }).catch(() => {
      throw signal?.aborted ? aborted() : new Unreachable(call);
    });
    if (response.status === 401) throw new NotLetIn(call);
    if (!response.ok) throw new CallFailed(await readFailure(response));
    return response;
  }
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    throw isAborted(error) ? error : new Unreachable(response.url);
  }
}

/** A program in between may answer with a page of its own. Its status is all that can be said. */
async function readFailure(response: Response): Promise<Failure> {
  const body = (await readJson(response).catch(() => null)) as Failure | null;
  if (body && typeof body.message === 'string') return { ...body, hints: body.hints ?? [] };
  return {
    error: 'bug',
    message: `the answer has the status ${response.status} and no reason`,
    hints: [],
    exit_code: 127,
  };
}

import { CallFailed } from './failure';
import type { CallHandlers } from './transport';
import type { Item, Reply } from './types';

export type Finished = { done: unknown };

/** Hands one reply to its handler. Returns the answer with the last reply, and throws its error. */
export function receive(
  reply: Reply,
  handlers: CallHandlers & { onItem?: (item: Item) => void },
): Finished | undefined {
  if ('item' in reply) handlers.onItem?.(reply.item);
  else if ('note' in reply) handlers.onNote?.(reply.note);
  else if ('progress' in reply) handlers.onProgress?.(reply.progress);
  else if ('part' in reply) handlers.onPart?.(reply.part);
  else if ('error' in reply) throw new CallFailed(reply.error);
  else if ('done' in reply) return { done: reply.done };
  return undefined;
}

import { toasts } from './toasts.svelte';
import { call, transport } from '../api/transport';
import type { Download, LogRef, RunId } from '../api/types';

export type Saved = { log: LogRef } | { run: RunId; file: string } | { path: string };

/** Saves a log or a file on the reader's machine: the browser fetches it, whatever its size. */
export async function save(what: Saved): Promise<void> {
  try {
    const { path } = await call<Download>('download', what);
    transport().save(path);
  } catch (error) {
    toasts.failed(error);
  }
}

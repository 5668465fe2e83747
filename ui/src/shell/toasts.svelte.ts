import { failureOf, isAborted } from '../api/failure';

export type ToastAction = { text: string; run?: () => void; address?: string };
export type Toast = {
  id: number;
  kind: 'done' | 'failed' | 'note';
  text: string;
  hints: string[];
  actions: ToastAction[];
};

const SHOWN_MS = 7000;

class Toasts {
  all = $state<Toast[]>([]);
  #next = 1;

  done(text: string, actions: ToastAction[] = []): void {
    this.#show({ kind: 'done', text, hints: [], actions });
  }

  note(text: string, actions: ToastAction[] = []): void {
    this.#show({ kind: 'note', text, hints: [], actions });
  }

  /** An error stays until it is closed. */
  failed(error: unknown, actions: ToastAction[] = []): void {
    if (isAborted(error)) return;
    const { message, hints } = failureOf(error);
    this.#show({ kind: 'failed', text: message, hints, actions });
  }

  close(id: number): void {
    this.all = this.all.filter((toast) => toast.id !== id);
  }

  #show(toast: Omit<Toast, 'id'>): void {
    const id = this.#next++;
    // The same error once a second is one error.
    const others = this.all.filter(({ text, kind }) => text !== toast.text || kind !== toast.kind);
    this.all = [...others.slice(-3), { ...toast, id }];
    if (toast.kind !== 'failed') setTimeout(() => this.close(id), SHOWN_MS);
  }
}

export const toasts = new Toasts();

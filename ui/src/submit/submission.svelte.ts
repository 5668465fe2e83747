import { aborted, isAborted } from '../api/failure';
import { call } from '../api/transport';
import type { Progress, Submitted } from '../api/types';
import { runAddress, sweepAddress } from '../route/address';
import { route } from '../route/route.svelte';
import { toasts } from '../shell/toasts.svelte';
import { counted } from '../words/numbers';
import type { JobForm } from './job-form.svelte';
import type { SubmitOptions } from './job/same-command';

/** What `submit` is asked, with the job on its standard input. */
export function submitArguments(text: string, { after, in_place, any_size }: SubmitOptions): object {
  const runs = after.replaceAll(/[\s;]+/g, ',').replaceAll(/,+/g, ',').replaceAll(/^,|,$/g, '');
  return {
    file: '-',
    input: text,
    ...(runs ? { after: runs } : {}),
    ...(in_place ? { in_place } : {}),
    ...(any_size ? { any_size } : {}),
  };
}

/** Rejects when the submission is given up, and never ends otherwise. */
function givenUp(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(aborted())));
}

/** A submission on its way. */
export class Submission {
  progress = $state.raw<Progress | null>(null);
  note = $state('');
  error = $state.raw<unknown>(null);
  isBusy = $state(false);
  #running: AbortController | undefined;

  /** Sends the job, unless it is not right: then it returns false and the form says why. */
  async send(form: JobForm): Promise<boolean> {
    if (this.isBusy) return true;
    this.isBusy = true;
    this.error = null;
    this.progress = null;
    this.note = 'Checking…';
    const mine = new AbortController();
    this.#running = mine;
    try {
      // The check itself goes on: what it finds is shown, whether or not the job is sent.
      if (!(await Promise.race([form.check(), givenUp(mine.signal)]))) return false;
      this.note = 'Submitting the job…';
      const answer = await call<Submitted>('submit', submitArguments(form.text, form.options), {
        onProgress: (progress) => (this.progress = progress),
        onNote: (note) => (this.note = note),
        signal: mine.signal,
      });
      this.#submitted(form, answer);
      return true;
    } catch (error) {
      if (isAborted(error)) toasts.note('the submission was given up');
      else if (form.refused(error)) return false;
      else this.error = error;
      return true;
    } finally {
      this.isBusy = false;
    }
  }

  cancel(): void {
    this.#running?.abort();
  }

  #submitted(form: JobForm, { id, cluster, runs }: Submitted): void {
    const first = runs[0]?.id ?? id;
    const isSweep = runs.length > 1;
    const address = isSweep ? sweepAddress(id) : runAddress(first);
    const many = isSweep ? `, ${counted(runs.length, 'run')}` : '';
    form.loaded = { words: id, text: form.text };
    toasts.done(`${id} submitted to ${cluster}${many}`, [
      { text: 'Open', address },
      { text: 'Logs', address: runAddress(first, 'logs') },
    ]);
    route.go(address);
  }
}

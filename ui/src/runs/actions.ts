import { call } from '../api/transport';
import type { Aborted, Changed, Resubmitted, RunsWindow, Tagged } from '../api/types';
import { runAddress, sweepAddress } from '../route/address';
import { questions } from '../shell/questions.svelte';
import { toasts } from '../shell/toasts.svelte';
import { counted } from '../words/numbers';
import { shortId } from '../words/states';
import type { Query } from './filter';
import { idOf } from './row';

// What can be done to runs and sweeps, wherever they are shown. Each takes ids, asks first if it
// ends something, and says how it went.

async function tried(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    toasts.failed(error);
  }
}

function named(ids: string[]): string {
  return ids.length === 1 ? (ids[0] ?? '') : counted(ids.length, 'run or sweep', 'runs and sweeps');
}

export async function abortRuns(ids: string[]): Promise<void> {
  const answer = await questions.ask({
    title: `Abort ${named(ids)}?`,
    text: 'Running processes get SIGTERM, and SIGKILL ten seconds later. What is queued leaves the queue. An ended run stays as it is.',
    items: ids,
    confirm: 'Abort',
    isDangerous: true,
  });
  if (answer === null) return;
  await tried(async () => {
    const { cancelling, already_ended } = await call<Aborted>('abort', { runs: ids });
    const ended = already_ended.length > 0 ? `; ${already_ended.length} had ended before` : '';
    toasts.done(`${counted(cancelling.length, 'run')} being cancelled${ended}`);
  });
}

export async function resubmitRuns(ids: string[]): Promise<void> {
  const answer = await questions.ask({
    title: `Submit ${named(ids)} again?`,
    text: 'With the same command, code, data and size. A run that has not ended is aborted first; of a sweep, the runs that failed, were cancelled or are lost are submitted.',
    items: ids,
    confirm: 'Resubmit',
  });
  if (answer === null) return;
  await tried(async () => {
    const { resubmitted } = await call<Resubmitted>('resubmit', { runs: ids });
    const first = resubmitted[0];
    const isOne = resubmitted.length === 1 && first;
    const address = first && (first.runs.length > 1 ? sweepAddress(first.id) : runAddress(first.id));
    toasts.done(
      isOne ? `submitted again as ${first.id}` : `${resubmitted.length} submitted again`,
      isOne && address ? [{ text: 'Show', address }] : [],
    );
  });
}

export async function holdRuns(ids: string[]): Promise<void> {
  await change('hold', ids, 'on hold', [{ text: 'Undo', run: () => void resumeRuns(ids) }]);
}

export async function resumeRuns(ids: string[]): Promise<void> {
  await change('resume', ids, 'may start', []);
}

async function change(
  verb: string,
  ids: string[],
  done: string,
  undo: { text: string; run: () => void }[],
): Promise<void> {
  await tried(async () => {
    const { changed, unchanged } = await call<Changed>(verb, { runs: ids });
    if (changed.length > 0) toasts.done(`${counted(changed.length, 'run')} ${done}`, undo);
    const first = unchanged[0];
    if (first) {
      const others = unchanged.length > 1 ? `; and ${unchanged.length - 1} more` : '';
      toasts.note(`${shortId(first.id)}: ${first.why}${others}`);
    }
  });
}

/** `best -try` adds the one and removes the other. */
export async function tagRuns(ids: string[]): Promise<void> {
  const answer = await questions.ask({
    title: `Tag ${named(ids)}`,
    confirm: 'Tag',
    input: { label: 'Tags to add; those with a minus before them are removed', placeholder: 'best -try' },
  });
  if (answer === null) return;
  const tags = answer.split(/[\s,]+/).filter(Boolean);
  const words = tags.map((tag) => (/^[+-]/.test(tag) ? tag : `+${tag}`));
  await tried(async () => {
    const { tagged, unchanged } = await call<Tagged>('tag', { words: [...ids, ...words] });
    const same = unchanged.length > 0 ? `; ${unchanged.length} had them` : '';
    toasts.done(`${counted(tagged.length, 'run')} tagged${same}`);
  });
}

const IDS_PER_CALL = 1000;
export const MOST_SELECTED = 10_000;

/** The ids of all rows that fit, up to `MOST_SELECTED`. */
export async function allIds(query: Query): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const args = { ...query, offset: ids.length, limit: IDS_PER_CALL };
    const { rows, total } = await call<RunsWindow>('runs.page', args);
    ids.push(...rows.map(idOf));
    if (rows.length === 0 || ids.length >= Math.min(total, MOST_SELECTED)) return ids;
  }
}

import type { Backup, BackupsPruned, Keep, Span, WorkspaceRow } from '../api/types';
import type { IconName } from '../parts/icons';
import { counted, sizeText } from '../words/numbers';
import { durationText } from '../words/time';

export type BackupLook = { word: string; icon: IconName; tone: 'good' | 'bad' | 'none' };

export function backupLook({ state }: Pick<WorkspaceRow, 'state'>): BackupLook {
  if (state === 'good') return { word: 'backed up', icon: 'succeeded', tone: 'good' };
  if (state === 'failing') return { word: 'backups fail', icon: 'warning', tone: 'bad' };
  return { word: state === 'no backup' ? 'no backup yet' : state, icon: 'note', tone: 'none' };
}

/** `30m`, or `90 seconds` given as a number. */
export function everyText(every: Span): string {
  return typeof every === 'number' ? durationText(every * 1000).replace(/ 0+[a-z]$/, '') : every;
}

/** `575 kB in 7 files`. */
export function contentText({ files, bytes }: Pick<Backup, 'files' | 'bytes'>): string {
  return `${sizeText(bytes)} in ${counted(files, 'file')}`;
}

/** `the last 10, and one for each of 24 hours, 14 days and 8 weeks`. */
export function keepText({ last, hourly, daily, weekly }: Keep): string {
  const spans = [
    hourly > 0 ? counted(hourly, 'hour') : '',
    daily > 0 ? counted(daily, 'day') : '',
    weekly > 0 ? counted(weekly, 'week') : '',
  ].filter(Boolean);
  const more = spans.length > 1 ? `${spans.slice(0, -1).join(', ')} and ${spans.at(-1)}` : spans[0];
  return `the last ${last}${more ? `, and one for each of ${more}` : ''}`;
}

/** What a plan of `prune` comes to, or what it did. */
export function prunedText(pruned: BackupsPruned): string {
  const { dropped, packs, bytes, done, kept, marked } = pruned;
  if (dropped.length === 0 && packs === 0 && marked === 0) return `nothing to drop; ${counted(kept, 'backup')} kept`;
  const verb = done ? 'dropped' : 'would go';
  return `${counted(dropped.length, 'backup')} and ${counted(packs, 'pack')} ${verb}, ${sizeText(bytes)}; ${counted(kept, 'backup')} kept`;
}

export function where(on: string | null): string {
  return on ?? 'this machine';
}

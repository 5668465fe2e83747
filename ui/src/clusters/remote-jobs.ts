import type { RemoteJob } from '../api/types';

/** Our word for the state of a job, with the cluster's own where that says more. */
export function jobState({ state, word, reason, ended }: RemoteJob): string {
  const own = word?.toLowerCase();
  const why = reason && reason !== 'None' ? ` (${reason})` : '';
  if (state && own && own !== state && !why && !ended) return `${state} (${own})`;
  return (state ?? own ?? (ended ? 'ended' : 'gone')) + why;
}

/**
 * What `adopt` takes this job by, or null if it cannot be taken. Only Azure ML lets others' jobs be
 * taken; elsewhere it must be a run of Towline.
 */
export function adoptId(job: RemoteJob, kind: string): string | null {
  if (job.here) return null;
  return job.run ?? (kind === 'azureml' ? (job.job ?? job.name) : null);
}

export function jobFits(job: RemoteJob, words: string): boolean {
  const text = [job.name, job.job ?? '', job.user, jobState(job)].join(' ').toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

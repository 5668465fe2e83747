import type { PhaseCounts, Run, State } from '../api/types';

/** In the order in which a run goes through them. */
export const STATES: State[] = [
  'drafted',
  'staging',
  'submitting',
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'lost',
];

const ENDED: State[] = ['succeeded', 'failed', 'cancelled', 'lost'];

export function hasEnded(state: State): boolean {
  return ENDED.includes(state);
}

/** It waits here or in the queue of its cluster, so it can be put on hold. */
export function waits(state: State): boolean {
  return state === 'drafted' || state === 'queued';
}

/** What a badge shows of a run: its state, or the more telling condition that it is in. */
export type Shown = {
  /** The colour and the icon. */
  look: State | 'held' | 'on_hold' | 'cancelling';
  word: string;
  /** Behind the word, such as `exit 137`. */
  more: string | null;
};

export function shownState(run: Run): Shown {
  if (!hasEnded(run.state) && run.cancel_requested) {
    return { look: 'cancelling', word: 'cancelling', more: null };
  }
  if (run.state === 'running' && run.held_until !== null) {
    return { look: 'held', word: 'failed, held', more: null };
  }
  if (waits(run.state) && run.on_hold) {
    return { look: 'on_hold', word: 'on hold', more: null };
  }
  return { look: run.state, word: run.state, more: reasonText(run) };
}

const REASONS: Record<string, string> = {
  out_of_memory: 'out of memory',
  time_limit: 'time limit',
  preempted: 'preempted',
  node_failed: 'node failed',
  image_pull: 'image',
  set_up: 'set-up',
  not_started: 'not started',
  by_user: 'by you',
  dependency: 'another run',
};

/** The reason of an ending in two words. */
export function reasonText(run: Pick<Run, 'state' | 'reason' | 'exit_code'>): string | null {
  if (run.state === 'succeeded' || !hasEnded(run.state) || run.reason === null) return null;
  if (run.reason === 'exit_code') return `exit ${run.exit_code ?? '?'}`;
  if (run.reason === 'by_user') return null;
  return REASONS[run.reason] ?? run.reason.replaceAll('_', ' ');
}

export function countAll(states: PhaseCounts): number {
  return STATES.reduce((sum, state) => sum + (states[state] ?? 0), 0);
}

/** `3 running, 2 failed`, for a title or a reader of the screen. */
export function countsText(states: PhaseCounts): string {
  const present = STATES.filter((state) => (states[state] ?? 0) > 0);
  return present.map((state) => `${states[state]} ${state}`).join(', ') || 'no runs';
}

/** The end of an id that tables and messages show: five hex digits and the number in a sweep. */
export function shortId(id: string): string {
  const found = /([0-9a-f]{5})(-\d+)?$/.exec(id);
  return found ? found[0] : id;
}

import type { Ending, Recorded } from '../api/types';

export type SpanKind = 'staging' | 'queued' | 'on_hold' | 'running' | 'held';
export type TimeSpan = { kind: SpanKind; from: number; to: number };
export type AttemptLine = { attempt: number; spans: TimeSpan[]; ending: string | null };

/**
 * What a run did when, a line for each attempt. A span that has not ended goes to `now`. Events of
 * the same moment leave no span.
 */
export function timeline(events: Recorded[], created: number, now: number): AttemptLine[] {
  let line: AttemptLine = { attempt: 1, spans: [], ending: null };
  const lines = [line];
  const isSent = events.some(({ event }) => event === 'stage_intent');
  let kind: SpanKind | null = isSent ? 'staging' : 'queued';
  let from = created;

  const turn = (next: SpanKind | null, at: number) => {
    const before = line.spans.at(-1);
    if (before?.kind === kind && before.to === from) before.to = at;
    else if (kind !== null && at > from) line.spans.push({ kind, from, to: at });
    kind = next;
    from = at;
  };
  const begin = (attempt: number) => {
    if (line.attempt === attempt && line.ending === null) return;
    line = { attempt, spans: [], ending: null };
    lines.push(line);
  };

  for (const event of events) {
    switch (event.event) {
      case 'stage_intent':
        turn('staging', event.at);
        break;
      case 'submitted':
        turn('queued', event.at);
        break;
      case 'put_on_hold':
        turn('on_hold', event.at);
        break;
      case 'resumed':
        turn('queued', event.at);
        break;
      case 'attempt_started':
        if (event.attempt !== line.attempt) {
          // Nobody recorded that the attempt before had ended.
          turn(null, event.at);
          line.ending ??= 'ended';
          begin(event.attempt);
        }
        turn('running', event.at);
        break;
      case 'attempt_held':
        turn('held', event.at);
        break;
      case 'attempt_ended':
        turn('queued', event.at);
        line.ending = endingText(event.ending) ?? 'ended';
        begin(event.attempt + 1);
        break;
      case 'ended':
      case 'never_heard':
        turn(null, event.at);
        line.ending = 'ending' in event ? (endingText(event.ending) ?? 'ended well') : 'lost';
        break;
    }
  }
  turn(null, now);
  return lines.filter(({ spans, ending }) => spans.length > 0 || ending !== null);
}

/** How an attempt ended, in a few words; null if nothing is said of it. */
function endingText({ detail, cause, exit_code: code }: Ending): string | null {
  if (detail) return detail;
  if (cause === 'exit_code' && typeof code === 'number') return `exit ${code}`;
  return cause?.replaceAll('_', ' ') ?? null;
}

/** The time from the submission to the first start, or to now; null if neither is known. */
export function queueTime(events: Recorded[], created: number, now: number): number | null {
  const started = events.find((event) => event.event === 'attempt_started');
  if (started) return started.at - created;
  const ended = events.find((event) => event.event === 'ended' || event.event === 'never_heard');
  return (ended?.at ?? now) - created;
}

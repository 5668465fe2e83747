import { expect, test } from 'vitest';
import type { Recorded, RecordedEvent } from '../../src/api/types';
import { queueTime, timeline } from '../../src/run/timeline';

function recorded(events: ({ at: number } & RecordedEvent)[]): Recorded[] {
  return events.map((event, at) => ({ sequence: at + 1, run: 'r', ...event }));
}

test('each attempt has a line of what it did when', () => {
  const events = recorded([
    { at: 0, event: 'drafted' },
    { at: 1, event: 'stage_intent' },
    { at: 20, event: 'submitted' },
    { at: 50, event: 'attempt_started', attempt: 1 },
    { at: 90, event: 'attempt_ended', attempt: 1, counted: true, ending: { detail: 'node-1 went down' } },
    { at: 120, event: 'attempt_started', attempt: 2 },
  ]);
  expect(timeline(events, 0, 200)).toEqual([
    {
      attempt: 1,
      spans: [
        { kind: 'staging', from: 0, to: 20 },
        { kind: 'queued', from: 20, to: 50 },
        { kind: 'running', from: 50, to: 90 },
      ],
      ending: 'node-1 went down',
    },
    {
      attempt: 2,
      spans: [
        { kind: 'queued', from: 90, to: 120 },
        { kind: 'running', from: 120, to: 200 },
      ],
      ending: null,
    },
  ]);
  expect(queueTime(events, 0, 200)).toBe(50);
});

test('a failed run whose place is held, and one that was put on hold', () => {
  const events = recorded([
    { at: 10, event: 'put_on_hold' },
    { at: 30, event: 'resumed' },
    { at: 40, event: 'attempt_started', attempt: 1 },
    { at: 60, event: 'attempt_held', attempt: 1, until: 900, ending: {} },
    { at: 80, event: 'ended', attempt: 1, ending: { cause: 'exit_code', exit_code: 7 } },
  ]);
  const [line] = timeline(events, 0, 500);
  expect(line?.spans.map(({ kind }) => kind)).toEqual(['queued', 'on_hold', 'queued', 'running', 'held']);
  expect(line?.ending).toBe('exit 7');
});

test('a run that waits, and one that nobody heard of', () => {
  expect(timeline([], 0, 30)).toEqual([
    { attempt: 1, spans: [{ kind: 'queued', from: 0, to: 30 }], ending: null },
  ]);
  expect(queueTime([], 0, 30)).toBe(30);
  expect(timeline(recorded([{ at: 5, event: 'never_heard' }]), 0, 30)[0]?.ending).toBe('lost');
});

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { live } from '../../src/api/live.svelte';
import type { Run } from '../../src/api/types';
import { ShownRun } from '../../src/run/shown-run.svelte';
import { settled, TestTransport } from './fake-transport';

let transport: TestTransport;
let answers: ((state: string) => void)[];
let run: ShownRun;
let end: () => void;

beforeEach(async () => {
  vi.useFakeTimers();
  transport = new TestTransport();
  answers = [];
  transport.answers['show'] = () =>
    new Promise((done) => answers.push((state) => done({ id: 'r', state, events: [] })));
  live.start();
  transport.last.send({ item: 'begun', stream: 's1', cursor: 'h-0-0-0' });
  run = new ShownRun('r');
  end = run.start();
  await settled();
});
afterEach(() => {
  end();
  live.stop();
  vi.useRealTimers();
});

async function changes(state: string): Promise<void> {
  const now = { id: 'r', state } as Run;
  transport.last.send({ item: 'runs', cursor: 'h-1-0-0', events: [], runs: [now], removed: [] });
  await vi.advanceTimersByTimeAsync(1000);
}

async function answer(place: number, state: string): Promise<void> {
  answers[place]?.(state);
  await vi.advanceTimersByTimeAsync(1000);
}

test('an answer that is late does not stand in place of a newer one', async () => {
  await changes('running');
  await changes('failed');
  expect(answers.length).toBe(1);
  await answer(0, 'queued');
  // What has changed meanwhile is asked for once.
  expect(answers.length).toBe(2);
  await answer(1, 'failed');
  expect(run.shown?.state).toBe('failed');
  expect(answers.length).toBe(2);
});

test('nothing is asked for a page that was left', async () => {
  await changes('running');
  end();
  await answer(0, 'queued');
  expect(answers.length).toBe(1);
});

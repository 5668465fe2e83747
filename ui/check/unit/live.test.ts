import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { NotLetIn, Unreachable } from '../../src/api/failure';
import { Live } from '../../src/api/live.svelte';
import { pauseAfter } from '../../src/api/pauses';
import type { Changes } from '../../src/api/types';
import { settled, TestTransport } from './fake-transport';

const LOG = { run: 'r', attempt: 1, source: { rank: 0 } };
let transport: TestTransport;
let live: Live;

beforeEach(() => {
  vi.useFakeTimers();
  transport = new TestTransport();
  transport.answers['events.logs'] = () => ({});
  live = new Live();
});
afterEach(() => {
  live.stop();
  vi.useRealTimers();
});

function begin(cursor = 'h-1-0-0'): void {
  transport.last.send({ item: 'begun', stream: 's1', cursor });
}

test('the stream begins without a cursor, and lists that were read before are read again', () => {
  const resets = vi.fn();
  live.onReset(resets);
  live.start();
  expect(transport.last.args).toEqual({ no_runs: false, logs: [] });
  begin();
  expect(live.status).toBe('open');
  expect(resets).toHaveBeenCalledTimes(1);
});

test('after a break it goes on behind the last item, and nobody has to read again', async () => {
  const resets = vi.fn();
  const seen: Changes[] = [];
  live.onReset(resets);
  live.onRuns((changes) => seen.push(changes));
  live.start();
  begin();
  transport.last.send({ item: 'runs', cursor: 'h-7-0-0', events: [], runs: [], removed: [] });
  transport.last.fail(new Unreachable());
  await settled();
  expect(live.status).toBe('reconnecting');
  await vi.advanceTimersByTimeAsync(pauseAfter(1));
  expect(transport.streams).toHaveLength(2);
  expect(transport.last.args.cursor).toBe('h-7-0-0');
  begin('h-7-0-0');
  expect(live.status).toBe('open');
  expect(seen).toHaveLength(1);
  expect(resets).toHaveBeenCalledTimes(1);
});

test('a reset says that lists are to be read again', () => {
  const resets = vi.fn();
  live.start();
  begin();
  live.onReset(resets);
  transport.last.send({ item: 'reset', cursor: 'x-0-0-0' });
  expect(resets).toHaveBeenCalledTimes(1);
});

test('pauses grow, and at last the program is taken for ended; it may come back', async () => {
  live.start();
  for (let failure = 1; failure <= 4; failure++) {
    expect(transport.streams).toHaveLength(failure);
    transport.last.fail(new Unreachable());
    await settled();
    expect(live.status).toBe(failure < 4 ? 'reconnecting' : 'gone');
    await vi.advanceTimersByTimeAsync(pauseAfter(failure));
  }
  begin();
  expect(live.status).toBe('open');
  expect([1, 2, 3, 9].map(pauseAfter)).toEqual([500, 1000, 2000, 10_000]);
});

test('a wrong token is not tried again', async () => {
  live.start();
  transport.last.fail(new NotLetIn());
  await settled();
  expect(live.status).toBe('not_let_in');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(transport.streams).toHaveLength(1);
});

test('a stream that falls silent is taken for broken', async () => {
  live.start();
  begin();
  await vi.advanceTimersByTimeAsync(59_000);
  transport.last.send({ item: 'alive', now: new Date().toISOString() });
  await vi.advanceTimersByTimeAsync(59_000);
  expect(transport.streams).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(transport.streams).toHaveLength(2);
});

test('logs are followed over a break: nothing is missing and nothing comes twice', async () => {
  let text = '';
  live.start();
  begin();
  live.follow(
    { ...LOG, offset: 10 },
    { onPart: (bytes) => (text += new TextDecoder().decode(bytes)), onCut: () => undefined },
  );
  await settled();
  expect(transport.calls.at(-1)?.args).toEqual({ stream: 's1', logs: [{ ...LOG, offset: 10 }] });
  transport.last.send({ item: 'log', ...LOG, offset: 10, length: 3, text: 'abc' });
  transport.last.fail(new Unreachable());
  await settled();
  await vi.advanceTimersByTimeAsync(pauseAfter(1));
  expect(transport.last.args.logs).toEqual([{ ...LOG, offset: 13 }]);
  begin();
  transport.last.send({ item: 'log', ...LOG, offset: 11, length: 4, text: 'bcde' });
  transport.last.send({ item: 'log', ...LOG, offset: 11, length: 2, text: 'bc' });
  transport.last.send({ item: 'log', ...LOG, offset: 15, length: 1, base64: btoa('f') });
  expect(text).toBe('abcdef');
});

test('a log that is asked for before the stream has a name is asked for when it has', async () => {
  live.start();
  live.follow({ ...LOG, offset: 0 }, { onPart: () => undefined, onCut: () => undefined });
  expect(transport.calls).toHaveLength(0);
  begin();
  await settled();
  expect(transport.calls).toEqual([
    { call: 'events.logs', args: { stream: 's1', logs: [{ ...LOG, offset: 0 }] } },
  ]);
});

test('a cut log goes on from where it was cut', () => {
  const cuts: number[] = [];
  const offsets: number[] = [];
  live.start();
  begin();
  live.follow(
    { ...LOG, offset: 50 },
    { onPart: (_, offset) => offsets.push(offset), onCut: (length) => cuts.push(length) },
  );
  transport.last.send({ item: 'log_cut', ...LOG, length: 5 });
  transport.last.send({ item: 'log', ...LOG, offset: 5, length: 1, text: 'x' });
  expect([cuts, offsets]).toEqual([[5], [5]]);
});

test('what clusters say is kept by name', () => {
  live.start();
  begin();
  transport.last.send({ item: 'clusters', clusters: [{ name: 'lab', seen: null, trouble: 'timed out' }] });
  expect(live.clusters.lab?.trouble).toBe('timed out');
});

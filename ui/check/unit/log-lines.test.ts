import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { live } from '../../src/api/live.svelte';
import type { LogsRead } from '../../src/api/types';
import { LogLines } from '../../src/log/log-lines.svelte';
import { read, TextLog } from '../fake/log-text.js';
import { settled, TestTransport } from './fake-transport';

const LOG = { run: 'r', attempt: 1, source: { rank: 0 } };
let transport: TestTransport;
let log: TextLog;
let lines: LogLines;
let end: () => void;

beforeEach(() => {
  vi.useFakeTimers();
  transport = new TestTransport();
  log = new TextLog('one\ntwo\nthr');
  transport.answers['logs.read'] = (args: LogsRead) => read(log, args.from, args.lines);
  transport.answers['events.logs'] = () => ({});
  live.start();
  transport.last.send({ item: 'begun', stream: 's1', cursor: 'h-0-0-0' });
});
afterEach(() => {
  end();
  live.stop();
  vi.useRealTimers();
});

async function open(): Promise<void> {
  lines = new LogLines(LOG);
  end = lines.start();
  lines.need(0, 50);
  await settled();
}

/** The job writes, and the stream tells. */
async function write(text: string | Uint8Array, at = log.bytes): Promise<void> {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  log.append(bytes);
  transport.last.send({
    item: 'log',
    ...LOG,
    offset: at,
    length: bytes.length,
    base64: btoa(String.fromCharCode(...bytes)),
  });
  await vi.advanceTimersByTimeAsync(40);
}

const all = () => Array.from({ length: lines.total }, (_, at) => lines.at(at));

test('the stream goes on within the open line', async () => {
  await open();
  expect(all()).toEqual(['one', 'two', 'thr']);
  await write('ee\nfour\nfi');
  expect(all()).toEqual(['one', 'two', 'three', 'four', 'fi']);
  await write('ve');
  await write('\n');
  await write('six');
  expect(all()).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
  expect(lines.bytes).toBe(log.bytes);
});

test('a character that is split over two parts is whole', async () => {
  await open();
  const rocket = new TextEncoder().encode('🚀\n');
  await write(rocket.slice(0, 2));
  await write(rocket.slice(2));
  expect(lines.at(2)).toBe('thr🚀');
});

test('new windows begin where old ones end', async () => {
  log = new TextLog('x\n'.repeat(255));
  await open();
  lines.need(200, 260);
  await settled();
  await write('a\nb\nc\n');
  await settled();
  expect([254, 255, 256, 257].map((at) => lines.at(at))).toEqual(['x', 'a', 'b', 'c']);
  expect(lines.total).toBe(258);
});

test('a gap is read', async () => {
  await open();
  log.append('ee\nmissed\n');
  await write('seen\n');
  await settled();
  expect(all()).toEqual(['one', 'two', 'three', 'missed', 'seen']);
});

test('an answer that knows more than the stream does not lead to lines twice', async () => {
  await open();
  const offset = log.bytes;
  const text = 'ee\nfour\n';
  log.append(text);
  // The window is read anew while the part of the stream is on its way.
  lines.need(0, 50);
  const later = new LogLines(LOG);
  const endLater = later.start();
  later.need(0, 50);
  await settled();
  transport.last.send({ item: 'log', ...LOG, offset, length: text.length, text });
  await vi.advanceTimersByTimeAsync(40);
  for (const shown of [lines, later]) {
    expect([0, 1, 2, 3].map((at) => shown.at(at))).toEqual(['one', 'two', 'three', 'four']);
    expect(shown.total).toBe(4);
  }
  endLater();
});

test('a progress bar without end does not pile up', async () => {
  log = new TextLog('');
  await open();
  for (let at = 0; at < 300; at++) await write(`${'#'.repeat(50)} ${at}\r`);
  expect(lines.total).toBe(1);
  expect((lines.at(0) ?? '').length).toBeLessThan(20_000);
  expect(lines.at(0)).toContain(' 299');
});

test('a log that its job cuts is read again', async () => {
  await open();
  log.cut(4);
  transport.last.send({ item: 'log_cut', ...LOG, length: 4 });
  await settled();
  expect(lines.cutTo).toBe(4);
  expect(all()).toEqual(['one']);
  await write('again\n');
  expect(all()).toEqual(['one', 'again']);
});

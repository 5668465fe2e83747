import { expect, test } from 'vitest';
import { makeRun } from '../fake/runs.js';
import type { Run } from '../../src/api/types';
import { visiblePieces, visibleText } from '../../src/words/escapes';
import { counted, countText, sizeText } from '../../src/words/numbers';
import { quoted, quotedPath } from '../../src/words/shell';
import { commandIn, partsOf } from '../../src/words/sentence';
import { countsText, shortId, shownState } from '../../src/words/states';
import { ageText, durationText, timeText, tookMilliseconds } from '../../src/words/time';
import { yamlText } from '../../src/words/yaml';

const run = (changes: object) => makeRun(changes) as unknown as Run;

test('durations have two units at most', () => {
  const cases: [number, string][] = [
    [-5, '0s'],
    [999, '0s'],
    [59_999, '59s'],
    [60_000, '1m 00s'],
    [3_599_000, '59m 59s'],
    [7_500_000, '2h 05m'],
    [273_600_000, '3d 4h'],
  ];
  for (const [time, text] of cases) expect(durationText(time)).toBe(text);
});

test('ages have one unit', () => {
  const texts = [0, 30_000, 90_000, 7_300_000, 100_000_000, 200_000_000].map(ageText);
  expect(texts).toEqual(['just now', '30s', '1m', '2h', '27h', '2d']);
});

test('what has not begun took no time, and what goes on takes it until now', () => {
  expect(tookMilliseconds(null, null, 5)).toBeNull();
  expect(tookMilliseconds('1970-01-01T00:00:01Z', null, 5000)).toBe(4000);
  expect(tookMilliseconds('1970-01-01T00:00:01Z', '1970-01-01T00:00:03Z', 9000)).toBe(2000);
  expect(timeText('nonsense')).toBe('nonsense');
});

test('sizes and counts', () => {
  expect([0, 999, 1000, 1500, 999_950, 3_400_000_000].map(sizeText)).toEqual([
    '0 bytes',
    '999 bytes',
    '1.0 kB',
    '1.5 kB',
    '1.0 MB',
    '3.4 GB',
  ]);
  expect(countText(10_000_000)).toBe('10,000,000');
  expect([counted(1, 'run'), counted(2, 'match', 'matches')]).toEqual(['1 run', '2 matches']);
});

test('a badge says the more telling condition', () => {
  expect(shownState(run({ state: 'running', cancel_requested: true })).word).toBe('cancelling');
  expect(shownState(run({ state: 'running', held_until: 'x' })).word).toBe('failed, held');
  expect(shownState(run({ state: 'queued', on_hold: true })).word).toBe('on hold');
  expect(shownState(run({ state: 'cancelled', cancel_requested: true })).word).toBe('cancelled');
  expect(shownState(run({ state: 'failed', reason: 'exit_code', exit_code: 3 })).more).toBe('exit 3');
  expect(shownState(run({ state: 'failed', reason: 'something_new' })).more).toBe('something new');
  expect(countsText({ failed: 1, running: 2 })).toBe('2 running, 1 failed');
});

test('ids are shown by their end', () => {
  expect(shortId('train-1794731248-5e7d81da')).toBe('d81da');
  expect(shortId('train-1794731252-0f5b1aee-3')).toBe('b1aee-3');
  expect(shortId('odd')).toBe('odd');
});

test('hidden characters are shown, others are left alone', () => {
  expect(visibleText('a\u202eb')).toBe('a\\u{202e}b');
  expect(visibleText('tab\tnew\nline 日本 🚀 é العربية')).toBe('tab\tnew\nline 日本 🚀 é العربية');
  expect(visibleText('\ud800')).toBe('\\u{d800}');
  expect(visibleText('\u{e0041}')).toBe('\\u{e0041}');
  expect(visiblePieces('\u200b\u200b')).toHaveLength(2);
});

test('sentences and their commands', () => {
  expect(partsOf('add `x` to `y`').map(({ text, isCode }) => [text, isCode])).toEqual([
    ['add ', false],
    ['x', true],
    [' to ', false],
    ['y', true],
  ]);
  expect(commandIn('`a` then `tow nodes` shows')).toBe('tow nodes');
  expect(commandIn('tow why 4')).toBe('tow why 4');
  expect(commandIn('nothing')).toBeNull();
});

test('a job as YAML', () => {
  const job = {
    name: 'train',
    on: 'yes',
    resources: { nodes: 4, time: '14d' },
    list: [{ a: 1, b: 'x: y' }, { a: 2 }],
    tags: ['a', '1-3'],
    nothing: null,
    script: 'one\ntwo\n',
  };
  expect(yamlText(job)).toBe(
    'name: train\n"on": "yes"\nresources:\n  nodes: 4\n  time: "14d"\nlist:\n  - a: 1\n    b: "x: y"\n  - a: 2\ntags: [a, "1-3"]\nscript: |\n  one\n  two\n',
  );
});

test('a word for a shell stays one word, and a path is no option', () => {
  expect(quoted('out/last.pt')).toBe('out/last.pt');
  expect(quoted("$(touch it's).txt")).toBe("'$(touch it'\\''s).txt'");
  expect(quotedPath('-rf')).toBe('./-rf');
  expect(quotedPath('-r f')).toBe("'./-r f'");
});

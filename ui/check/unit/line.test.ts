import { expect, test } from 'vitest';
import { finderOf, lastState, MOST_SHOWN, shownLine } from '../../src/log/line';

const texts = (raw: string) => shownLine(raw).pieces.map(({ text }) => text);

test('a progress bar is folded to its last state', () => {
  expect(lastState('  0%\r 41%\r100%')).toBe('100%');
  expect(lastState('  0%\r100%\r')).toBe('100%');
  expect(lastState('windows\r')).toBe('windows');
  expect(lastState('plain')).toBe('plain');
  expect(lastState('\r\r')).toBe('');
});

test('a time at the beginning stands apart', () => {
  for (const time of [
    '2026-11-15T08:27:33.273Z ',
    '[2026-11-15 08:27:33] ',
    '2026/11/15 08:27:33,273 ',
    '08:27:33 ',
    '2026-11-15T08:27:33+01:00 ',
  ]) {
    expect(shownLine(`${time}INFO step`)).toMatchObject({ time, pieces: [{ text: 'INFO step' }] });
  }
  expect(shownLine('step 08:27:33').time).toBe('');
});

test('characters that would not be seen are escapes', () => {
  expect(texts('a\u202eb\u200bc')).toEqual(['a', '\\u{202e}', 'b', '\\u{200b}', 'c']);
  expect(shownLine('\u0000').pieces).toEqual([
    { text: '\\u{0}', look: {}, isEscape: true, isMatch: false },
  ]);
});

test('matches are marked across colours', () => {
  const find = finderOf('step 12', false, false);
  const { pieces } = shownLine('a STEP \u001b[31m12\u001b[0m b', find);
  expect(pieces.filter(({ isMatch }) => isMatch).map(({ text }) => text)).toEqual(['STEP ', '12']);
  expect(pieces.map(({ text }) => text).join('')).toBe('a STEP 12 b');
});

test('a match in the time does not shift the others', () => {
  const { pieces } = shownLine('08:27:33 at 08', finderOf('08', false, false));
  expect(pieces.map(({ text, isMatch }) => [text, isMatch])).toEqual([
    ['at ', false],
    ['08', true],
  ]);
});

test('searches by text, by expression, with and without capitals', () => {
  expect(finderOf('a.c', false, true)?.('abc a.c')).toEqual([[4, 7]]);
  expect(finderOf('a.c', true, true)?.('abc a.c')).toEqual([[0, 3], [4, 7]]);
  expect(finderOf('ABC', false, true)?.('abc')).toEqual([]);
  expect(finderOf('ABC', false, false)?.('abc')).toEqual([[0, 3]]);
  expect(finderOf('(', true, false)).toBeUndefined();
  expect(finderOf('', false, false)).toBeUndefined();
  expect(finderOf('x*', true, false)?.('aaa')).toEqual([]);
});

test('a line without end is cut, and says so', () => {
  const { pieces, hidden } = shownLine('x'.repeat(MOST_SHOWN + 5));
  expect(pieces[0]?.text.length).toBe(MOST_SHOWN);
  expect(hidden).toBe(5);
});

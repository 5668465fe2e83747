import { expect, test } from 'vitest';
import { isDark, parseAnsi } from '../../src/log/ansi';

const text = (line: string) => parseAnsi(line).map((piece) => piece.text).join('');

test('a plain line is one piece', () => {
  expect(parseAnsi('step 1')).toEqual([{ text: 'step 1', look: {} }]);
  expect(parseAnsi('')).toEqual([]);
});

test('the sixteen colours, bold and their ends', () => {
  expect(parseAnsi('\u001b[31mred\u001b[1mbold\u001b[0mplain')).toEqual([
    { text: 'red', look: { color: 1 } },
    { text: 'bold', look: { color: 1, isBold: true } },
    { text: 'plain', look: {} },
  ]);
  expect(parseAnsi('\u001b[92;104mx\u001b[39mx\u001b[49mx')).toEqual([
    { text: 'x', look: { color: 10, background: 12 } },
    { text: 'x', look: { background: 12 } },
    { text: 'x', look: {} },
  ]);
});

test('256 colours and true colours, with semicolons and with colons', () => {
  expect(parseAnsi('\u001b[38;5;9mx')[0]?.look).toEqual({ color: 9 });
  expect(parseAnsi('\u001b[38;5;196mx')[0]?.look).toEqual({ color: 'rgb(255 0 0)' });
  expect(parseAnsi('\u001b[48;5;232mx')[0]?.look).toEqual({ background: 'rgb(8 8 8)' });
  expect(parseAnsi('\u001b[38;2;1;2;300;1mx')[0]?.look).toEqual({ color: 'rgb(1 2 255)', isBold: true });
  expect(parseAnsi('\u001b[38:2:1:2:3mx')[0]?.look).toEqual({ color: 'rgb(1 2 3)' });
  expect(parseAnsi('\u001b[38;5;999mx')[0]?.look).toEqual({});
});

test('other sequences are dropped, with what they carry', () => {
  expect(text('\u001b[2Ja\u001b[10;10Hb\u001b[?25lc\u001b[Kd')).toBe('abcd');
  expect(text('\u001b]0;title\u0007a\u001b]8;;http://x\u001b\\b\u001b]8;;\u001b\\c')).toBe('abc');
  expect(text('\u001b(Ba\u001b=b\u001bPq#0\u001b\\c')).toBe('abc');
});

test('a sequence that does not end stays, so that nothing is hidden', () => {
  expect(text('a\u001b]0;never')).toBe('a\u001b]0;never');
  expect(text('a\u001b[31')).toBe('a\u001b[31');
});

test('whether light text is readable on a colour', () => {
  expect(isDark('rgb(20 90 40)')).toBe(true);
  expect(isDark('rgb(250 240 180)')).toBe(false);
});

import { expect, test } from 'vitest';
import { flatIndex, flatTotal, locate } from '../../src/runs/flat';

const unfolded = [
  { at: 1, count: 3 },
  { at: 4, count: 2 },
];

test('unfolded sweeps put their runs below their rows', () => {
  expect(flatTotal(6, unfolded)).toBe(11);
  expect(Array.from({ length: 11 }, (_, index) => locate(index, unfolded))).toEqual([
    { at: 0 },
    { at: 1 },
    { at: 1, child: 0 },
    { at: 1, child: 1 },
    { at: 1, child: 2 },
    { at: 2 },
    { at: 3 },
    { at: 4 },
    { at: 4, child: 0 },
    { at: 4, child: 1 },
    { at: 5 },
  ]);
});

test('the row of something in the folded list', () => {
  expect([0, 1, 2, 4, 5].map((at) => flatIndex(at, unfolded))).toEqual([0, 1, 5, 7, 10]);
});

test('a list without sweeps is itself', () => {
  expect(flatTotal(6, [])).toBe(6);
  expect(locate(5, [])).toEqual({ at: 5 });
});

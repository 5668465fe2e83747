import { expect, test } from 'vitest';
import { WindowCache } from '../../src/list/window-cache';

const items = (from: number) => Array.from({ length: 10 }, (_, at) => from + at);

test('items are found in their windows', () => {
  const cache = new WindowCache<number>(10, 3);
  cache.put(2, items(20));
  expect(cache.get(25)).toBe(25);
  expect(cache.get(15)).toBeUndefined();
  expect(cache.need(15, 32)).toEqual([1, 3]);
});

test('the window that was looked at longest ago goes first', () => {
  const cache = new WindowCache<number>(10, 3);
  for (const number of [0, 1, 2]) cache.put(number, items(number * 10));
  cache.need(0, 5);
  cache.put(3, items(30));
  expect([...cache.windows()].map(([number]) => number)).toEqual([2, 0, 3]);
});

test('a window that is put again replaces itself', () => {
  const cache = new WindowCache<number>(10, 2);
  cache.put(0, items(0));
  cache.put(1, items(10));
  cache.put(0, items(100));
  expect(cache.get(3)).toBe(103);
  cache.clear();
  expect(cache.has(0)).toBe(false);
});

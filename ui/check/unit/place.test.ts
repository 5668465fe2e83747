import { expect, test } from 'vitest';
import { barOf, BEGIN, lastPlace, move, placeOf } from '../../src/list/place';

const twenty = () => 20;
const TEN_MILLION = 10_000_000;

test('a place moves by pixels and stays in the list', () => {
  expect(move(BEGIN, 50, 100, twenty)).toEqual({ line: 2, offset: 10 });
  expect(move({ line: 2, offset: 10 }, -15, 100, twenty)).toEqual({ line: 1, offset: 15 });
  expect(move({ line: 2, offset: 10 }, -500, 100, twenty)).toEqual(BEGIN);
  expect(move(BEGIN, 10, 0, twenty)).toEqual(BEGIN);
});

test('lines may have heights of their own', () => {
  const heights = (line: number) => (line === 1 ? 100 : 20);
  expect(move(BEGIN, 70, 10, heights)).toEqual({ line: 1, offset: 50 });
  expect(move({ line: 2, offset: 0 }, -30, 10, heights)).toEqual({ line: 1, offset: 70 });
  expect(lastPlace(3, 90, heights)).toEqual({ line: 1, offset: 30 });
});

test('the last place has the end of the list at the lower edge', () => {
  expect(lastPlace(100, 400, twenty)).toEqual({ line: 80, offset: 0 });
  expect(lastPlace(100, 410, twenty)).toEqual({ line: 79, offset: 10 });
  expect(lastPlace(5, 400, twenty)).toEqual(BEGIN);
});

test('the bar and the place agree over ten million lines', () => {
  const range = 8_000_000 - 400;
  const last = lastPlace(TEN_MILLION, 400, twenty);
  expect(placeOf(0, last, range, twenty)).toEqual(BEGIN);
  expect(placeOf(range, last, range, twenty)).toEqual(last);
  expect(barOf(last, last, range, twenty)).toBe(range);
  for (const line of [1, 777_777, 5_000_000, 9_999_970]) {
    const place = placeOf(barOf({ line, offset: 5 }, last, range, twenty), last, range, twenty);
    expect(Math.abs(place.line + place.offset / 20 - (line + 0.25))).toBeLessThan(0.01);
  }
});

test('a list that fits has no way to go', () => {
  const last = lastPlace(5, 400, twenty);
  expect(barOf(BEGIN, last, 0, twenty)).toBe(0);
  expect(placeOf(3, last, 0, twenty)).toEqual(BEGIN);
});

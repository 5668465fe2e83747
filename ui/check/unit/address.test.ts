import { expect, test } from 'vitest';
import { takeFromAddress } from '../../src/api/token';
import { formatLogAddress, lineAddress, parseLogAddress } from '../../src/log/log-address';
import { formatAddress, parseAddress, runAddress } from '../../src/route/address';
import { addressOf, EVERYTHING, NEWEST_FIRST, queryOf, sortBy } from '../../src/runs/filter';

test('an address is read as it was written', () => {
  const query = new URLSearchParams({ text: 'a b&c' });
  const parsed = parseAddress(formatAddress(['run', 'a/b ü', 'logs'], query));
  expect(parsed.path).toEqual(['run', 'a/b ü', 'logs']);
  expect(parsed.query.get('text')).toBe('a b&c');
});

test('an address of nothing, or of nonsense, is one too', () => {
  expect(parseAddress('').path).toEqual([]);
  expect(parseAddress('#runs').path).toEqual(['runs']);
  expect(parseAddress('#/run/%E0%A4%A').path).toEqual(['run', '%E0%A4%A']);
});

test('filters are read as they were written', () => {
  const query = {
    filter: {
      states: ['running', 'failed'],
      clusters: ['lab', 'a&b'],
      experiments: ['x y'],
      tags: ['+1'],
      text: 'lr=0.1 "q"',
    },
    sort: { by: 'took' as const, ascending: false },
    fold: false,
  };
  expect(queryOf(new URLSearchParams(addressOf(query).toString()))).toEqual(query);
});

test('what is as usual is not in the address', () => {
  expect(addressOf({ filter: EVERYTHING, sort: NEWEST_FIRST, fold: true }).toString()).toBe('');
  expect(queryOf(new URLSearchParams())).toEqual({ filter: EVERYTHING, sort: NEWEST_FIRST, fold: true });
});

test('what nobody knows is left out of a filter', () => {
  const query = queryOf(new URLSearchParams('state=nonsense&state=active&sort=-nonsense'));
  expect(query.filter.states).toEqual(['active']);
  expect(query.sort).toEqual(NEWEST_FIRST);
});

test('a column sorts by itself first the way one wants it, then the other', () => {
  expect(sortBy(NEWEST_FIRST, 'name')).toEqual({ by: 'name', ascending: true });
  expect(sortBy({ by: 'name', ascending: true }, 'name')).toEqual({ by: 'name', ascending: false });
  expect(sortBy(NEWEST_FIRST, 'gpus')).toEqual({ by: 'gpus', ascending: false });
});

test('the address of a log', () => {
  const address = { sources: [{ rank: 0 }, { set_up: 1 }, { rank: 3 }], attempt: 2, line: 123 };
  expect(parseLogAddress(formatLogAddress(address))).toEqual(address);
  expect(parseLogAddress(new URLSearchParams('rank=-1&line=x&attempt='))).toEqual({
    sources: [],
    attempt: null,
    line: null,
  });
  expect(lineAddress({ run: 'r-1', attempt: 1, source: { rank: 0 } }, 122)).toBe(
    '#/run/r-1/logs?rank=0&attempt=1&line=123',
  );
  expect(runAddress('r-1')).toBe('#/run/r-1');
});

test('the token is taken out of the address', () => {
  expect(takeFromAddress('#token=abc')).toEqual({ token: 'abc', rest: '#/runs' });
  expect(takeFromAddress('#token=abc&/run/x?line=3')).toEqual({ token: 'abc', rest: '#/run/x?line=3' });
  expect(takeFromAddress('#/runs?text=token=abc')).toBeUndefined();
});

import { beforeEach, expect, test } from 'vitest';
import type { RunsPage, RunsWindow } from '../../src/api/types';
import { EVERYTHING, NEWEST_FIRST } from '../../src/runs/filter';
import { idOf } from '../../src/runs/row';
import { RunRows } from '../../src/runs/run-rows.svelte';
import { World } from '../fake/world.js';
import { settled, TestTransport } from './fake-transport';

const QUERY = { filter: EVERYTHING, sort: NEWEST_FIRST, fold: false };
let transport: TestTransport;
let world: World;

beforeEach(() => {
  transport = new TestTransport();
  world = new World({ runs: 1000, now: 1_800_000_000_000 });
  transport.answers['runs.page'] = (args: RunsPage): RunsWindow => structuredClone(world.page(args)) as RunsWindow;
});

const offsets = () => transport.calls.map(({ args }) => (args as RunsPage).offset);

test('only the windows in view are read, and each once', async () => {
  const rows = new RunRows(QUERY);
  rows.need(0, 40);
  await settled();
  expect(offsets()).toEqual([0]);
  rows.need(10, 50);
  rows.need(80, 140);
  await settled();
  expect(offsets()).toEqual([0, 100]);
  expect(rows.total).toBe(world.runs.length);
  expect(rows.at(120)).toBeDefined();
  expect(rows.at(500)).toBeUndefined();
});

test('after a refresh a row that is as it was stays the same object', async () => {
  const rows = new RunRows(QUERY);
  rows.need(0, 40);
  await settled();
  const before = [rows.at(0), rows.at(1)];
  const changed = before[0] && 'run' in before[0] ? before[0].run.id : '';
  world.change(changed, { state: 'lost' });
  rows.refresh();
  await settled();
  expect(rows.at(0)).not.toBe(before[0]);
  expect(rows.at(1)).toBe(before[1]);
});

test('a list that is of the place where the stream begins is not read again', async () => {
  const answer = transport.answers['runs.page'] as (args: RunsPage) => RunsWindow;
  let cursor = 'h-5-2-0';
  transport.answers['runs.page'] = (args: RunsPage) => ({ ...answer(args), cursor });
  const rows = new RunRows(QUERY);
  rows.need(0, 40);
  // The stream begins while the answer is on its way, and after it has come.
  rows.refresh(cursor);
  await settled();
  rows.refresh(cursor);
  await settled();
  expect(offsets()).toEqual([0]);
  // Something happened in between, or the windows are of different places.
  rows.refresh('h-6-2-0');
  cursor = 'h-6-2-0';
  await settled();
  expect(offsets()).toEqual([0, 0]);
  rows.refresh(cursor);
  await settled();
  expect(offsets()).toEqual([0, 0, 0]);
});

test('a changed run is changed in place before it is read again', async () => {
  const rows = new RunRows(QUERY);
  rows.need(0, 40);
  await settled();
  const row = rows.at(5);
  if (!row || !('run' in row)) throw new Error('no run');
  rows.replace([{ ...row.run, state: 'failed' }]);
  expect(rows.at(5)).toMatchObject({ run: { id: row.run.id, state: 'failed' } });
  expect(rows.find(row.run.id)).toBe(5);
  expect(offsets()).toEqual([0]);
});

test('a list that became shorter does not ask for windows behind its end for ever', async () => {
  const rows = new RunRows(QUERY);
  rows.need(950, 990);
  await settled();
  world.runs.splice(100);
  rows.refresh();
  await settled();
  expect(rows.total).toBe(100);
  const asked = transport.calls.length;
  rows.need(950, 990);
  await settled();
  expect(transport.calls.length).toBe(asked);
});

test('rows are known by the id of the run or of the sweep', async () => {
  const rows = new RunRows({ ...QUERY, fold: true });
  rows.need(0, 40);
  await settled();
  const ids = Array.from({ length: 40 }, (_, at) => rows.at(at)).map((row) => row && idOf(row));
  expect(new Set(ids).size).toBe(40);
});

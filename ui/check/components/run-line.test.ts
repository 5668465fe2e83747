import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { Row } from '../../src/api/types';
import RunLine from '../../src/runs/RunLine.svelte';
import { makeRun } from '../fake/runs.js';

const row = (changes: object) => ({ run: makeRun(changes) }) as unknown as Row;
afterEach(cleanup);

test('a row leads to its run and names its controls', () => {
  render(RunLine, { row: row({}), onselect: () => undefined });
  expect(screen.getByRole('link', { name: 'train' }).getAttribute('href')).toBe(
    '#/run/train-1794731248-5e7d81da',
  );
  expect(screen.getByRole('checkbox', { name: 'Select train d81da' })).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Pin train d81da' })).toBeTruthy();
});

test('a hostile name is text', () => {
  const { container } = render(RunLine, {
    row: row({ name: '<img src=x>\u202e', command: '<script>' }),
    onselect: () => undefined,
  });
  expect(container.querySelector('img, script')).toBeNull();
  expect(screen.getByText('<img src=x>\\u{202e}')).toBeTruthy();
});

test('a sweep has counts and can be unfolded', async () => {
  const ontoggle = vi.fn();
  const first = makeRun({ id: 'grid-1-0f5b1aee-1', sweep: 'grid-1-0f5b1aee', name: 'grid' });
  const sweep = { id: 'grid-1-0f5b1aee', states: { running: 2, failed: 1 }, started: null, ended: null, first };
  render(RunLine, { row: { sweep } as unknown as Row, ontoggle, onselect: () => undefined });
  expect(screen.getByRole('img', { name: '2 running, 1 failed' })).toBeTruthy();
  await fireEvent.click(screen.getByRole('button', { name: 'Unfold the runs of grid b1aee' }));
  expect(ontoggle).toHaveBeenCalledWith('grid-1-0f5b1aee');
});

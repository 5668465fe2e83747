import { cleanup, render, screen } from '@testing-library/svelte';
import { afterEach, expect, test } from 'vitest';
import type { Run } from '../../src/api/types';
import StateBadge from '../../src/parts/StateBadge.svelte';
import { makeRun } from '../fake/runs.js';

const run = (changes: object) => makeRun(changes) as unknown as Run;
afterEach(cleanup);

test('a state is an icon and a word', () => {
  const { container } = render(StateBadge, { run: run({ state: 'running' }) });
  expect(screen.getByText('running')).toBeTruthy();
  expect(container.querySelector('svg')?.getAttribute('aria-hidden')).toBe('true');
});

test('what is stale says since when and why', () => {
  const stale = { stale_since: '2026-11-15T08:27:33Z', stale: 'lab cannot be reached' };
  render(StateBadge, { run: run({ state: 'running', ...stale }) });
  expect(screen.getByText(/not heard of since .*: lab cannot be reached/)).toBeTruthy();
});

test('an ending says why', () => {
  render(StateBadge, { run: run({ state: 'failed', reason: 'out_of_memory' }) });
  expect(screen.getByText('out of memory')).toBeTruthy();
});

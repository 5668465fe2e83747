import { expect, test } from 'vitest';
import { countProblem, spanProblem, withoutEmpty } from '../../src/words/input';
import { createArgs, createProblems, EMPTY_FORM, pathProblem, restoreArgs, restoreProblems, type RestoreForm } from '../../src/workspaces/form';
import { backupLook, everyText, keepText, prunedText } from '../../src/workspaces/words';

test('spans and numbers are checked as the program reads them', () => {
  for (const text of ['', '14d', '2h30m', '90s', '01:30:00', '1-00:00:00', '90']) expect(spanProblem(text)).toBeNull();
  for (const text of ['0', '0s', 'long', '5 m', '-1h']) expect(spanProblem(text)).not.toBeNull();
  expect(countProblem('')).toBeNull();
  expect(countProblem('0', 1)).not.toBeNull();
  expect(countProblem('1.5')).not.toBeNull();
  expect(withoutEmpty({ a: '', b: null, c: false, d: 0, e: 'x' })).toEqual({ d: 0, e: 'x' });
});

test('a workspace is made of what was filled in', () => {
  const form = { ...EMPTY_FORM, path: '/scratch/$USER/work', setup: 'python3 -m venv env\n\n', ignore: ' ' };
  expect(createArgs(form)).toEqual({ name: 'work', path: '/scratch/$USER/work', setup: ['python3 -m venv env'], auto: true });
  expect(createArgs({ ...form, isAuto: false, every: '10m' })).not.toHaveProperty('every');
  expect(createProblems(form, [])).toEqual({});
  expect(Object.keys(createProblems({ ...form, path: 'work', every: 'often' }, ['work']))).toEqual(['name', 'path', 'every']);
  for (const path of ['/x', '~/x', '$HOME/x']) expect(pathProblem(path)).toBeNull();
});

test('a restore goes where it was told to, and to one place only', () => {
  const form: RestoreForm = { where: 'same', on: 'c2', path: '/tmp/x', only: 'src', withSetUp: false };
  expect(restoreArgs('work', null, form)).toEqual({ name: 'work' });
  expect(restoreArgs('work', '8161', { ...form, where: 'machine', withSetUp: true })).toEqual({ name: 'work', backup: '8161', on: 'c2', setup: true });
  expect(restoreArgs('work', null, { ...form, where: 'folder' })).toEqual({ name: 'work', path: '/tmp/x', only: ['src'] });
  expect(Object.keys(restoreProblems({ ...form, where: 'machine', on: ' ' }))).toEqual(['on']);
  expect(Object.keys(restoreProblems({ ...form, where: 'folder', path: 'x' }))).toEqual(['path']);
});

test('states and policies are told in words', () => {
  expect(backupLook({ state: 'no backup' }).word).toBe('no backup yet');
  expect(backupLook({ state: 'failing' }).tone).toBe('bad');
  expect(everyText('30m')).toBe('30m');
  expect(everyText(1800)).toBe('30m');
  expect(keepText({ last: 10, hourly: 24, daily: 14, weekly: 8 })).toBe('the last 10, and one for each of 24 hours, 14 days and 8 weeks');
  expect(keepText({ last: 1, hourly: 0, daily: 1, weekly: 0 })).toBe('the last 1, and one for each of 1 day');
  expect(keepText({ last: 1, hourly: 0, daily: 0, weekly: 0 })).toBe('the last 1');
  const nothing = { kept: 3, dropped: [], packs: 0, marked: 0, bytes: 0, done: false, keep: { last: 1, hourly: 0, daily: 0, weekly: 0 } };
  expect(prunedText(nothing)).toBe('nothing to drop; 3 backups kept');
  expect(prunedText({ ...nothing, packs: 2, bytes: 1500, done: true })).toBe('0 backups and 2 packs dropped, 1.5 kB; 3 backups kept');
});

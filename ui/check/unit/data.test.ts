import { expect, test } from 'vitest';
import type { Transfer } from '../../src/api/types';
import { copyCalls, copySums, doneText, localPathProblem, storePathProblem } from '../../src/data/copies';
import { BY_NAME, entriesOf, shownEntries, sortBy } from '../../src/data/entries';
import { crumbs, placeAddress, placeOf, storesOfValues, verbPath } from '../../src/data/place';
import { wordToType } from '../../src/data/removal';

const FOLDERS = [
  { name: 'data', datastore: 'nas', path: 'alice/data' },
  { name: 'data/raw', datastore: 'eu', path: 'raw' },
];
const NOT_CHOSEN = { checksum: false, delete: false };
const IN_STORE = { store: 'nas', path: ['alice'] };
const IN_PROJECT = { store: null, path: ['data', 'voc20'] };

test('a place has one address, and a verb’s path', () => {
  for (const place of [IN_STORE, { store: 'nas', path: [] }, { store: 's', path: ['a b', '#%?'] }]) {
    const address = placeAddress(place);
    const parts = address.slice(2).split('/').map(decodeURIComponent);
    expect(placeOf(parts.slice(1))).toEqual(place);
  }
  expect(placeOf(['.', 'data'], '/p/')).toEqual({ store: null, path: ['data'], root: '/p/' });
  expect(placeOf([])).toBeNull();
  expect(placeOf(['.'])).toBeNull();
  expect(verbPath(IN_STORE)).toBe('nas:alice');
  expect(verbPath({ store: 'nas', path: [] }, 'a.txt')).toBe('nas:a.txt');
  expect(verbPath(IN_PROJECT, 'a.txt')).toBe('data/voc20/a.txt');
  expect(verbPath({ ...IN_PROJECT, root: '/p/' })).toBe('/p/data/voc20');
});

test('a mapped folder is one step of the way, the longest name first', () => {
  expect(crumbs(IN_STORE, FOLDERS).map(({ words }) => words)).toEqual(['nas', 'alice']);
  expect(crumbs(IN_PROJECT, FOLDERS).map(({ words }) => words)).toEqual(['data', 'voc20']);
  const raw = crumbs({ store: null, path: ['data', 'raw', 'x'] }, FOLDERS);
  expect(raw).toEqual([
    { words: 'data/raw', address: '#/data/./data/raw' },
    { words: 'x', address: '#/data/./data/raw/x' },
  ]);
});

test('stores are found in the values of the configuration, too', () => {
  const found = storesOfValues([
    { key: 'datastores.nas.kind', value: 'folder' },
    { key: 'datastores.nas.path', value: '/mnt/nas' },
    { key: 'folders.data/raw.datastore', value: 'nas' },
    { key: 'folders.data/raw.path', value: 'raw' },
    { key: 'clusters.lab.kind', value: 'slurm' },
  ]);
  expect(found.datastores).toEqual([{ name: 'nas', kind: 'folder', place: '/mnt/nas' }]);
  expect(found.folders).toEqual([{ name: 'data/raw', datastore: 'nas', path: 'raw' }]);
});

test('names are filtered and sorted, folders first', () => {
  const listing = {
    path: '',
    store: '',
    folders: ['z/', 'b'],
    objects: [
      { name: 'f10', size: 5, changed: '2026-01-02T00:00:00Z' },
      { name: 'f9', size: 50, changed: null },
    ],
  };
  const entries = entriesOf(listing);
  const names = (words: string, sort = BY_NAME) => shownEntries(entries, words, sort).map(({ name }) => name);
  expect(names('')).toEqual(['b', 'z', 'f9', 'f10']);
  expect(names('', { by: 'name', ascending: false })).toEqual(['z', 'b', 'f10', 'f9']);
  expect(names('', { by: 'size', ascending: false })).toEqual(['b', 'z', 'f9', 'f10']);
  expect(names('', { by: 'changed', ascending: false })).toEqual(['b', 'z', 'f10', 'f9']);
  expect(names('F 1')).toEqual(['f10']);
  expect(sortBy(BY_NAME, 'size')).toEqual({ by: 'size', ascending: false });
  expect(sortBy(BY_NAME, 'name').ascending).toBe(false);
});

test('a hundred thousand names are sorted in a moment', () => {
  const objects = Array.from({ length: 100_000 }, (_, at) => ({ name: `shard-${(at * 7919) % 100_000}`, size: at, changed: null }));
  const entries = entriesOf({ path: '', store: '', folders: [], objects });
  const begun = performance.now();
  expect(shownEntries(entries, 'shard', BY_NAME)).toHaveLength(100_000);
  expect(performance.now() - begun).toBeLessThan(3000);
});

test('a copy is `down` and `up` where the project has the path, and `cp` elsewhere', () => {
  expect(copyCalls('down', IN_PROJECT, ['a', 'b'], '', NOT_CHOSEN)).toEqual([
    { verb: 'down', args: { paths: ['data/voc20/a', 'data/voc20/b'] } },
  ]);
  expect(copyCalls('up', IN_PROJECT, [], ' sub/ ', { checksum: true, delete: true })).toEqual([
    { verb: 'up', args: { paths: ['data/voc20/sub'], checksum: true, delete: true } },
  ]);
  expect(copyCalls('up', IN_STORE, [], 'a:b.txt', NOT_CHOSEN)).toEqual([{ verb: 'cp', args: { from: './a:b.txt', to: 'nas:alice/' } }]);
  expect(copyCalls('down', IN_STORE, ['a', 'b'], '/tmp', NOT_CHOSEN)).toEqual([
    { verb: 'cp', args: { from: 'nas:alice/a', to: '/tmp/' } },
    { verb: 'cp', args: { from: 'nas:alice/b', to: '/tmp/' } },
  ]);
  expect(copyCalls('across', { store: 'nas', path: [] }, ['a'], 'eu:', NOT_CHOSEN)).toEqual([{ verb: 'cp', args: { from: 'nas:a', to: 'eu:' } }]);
});

test('a target that cannot be one has a reason', () => {
  expect(localPathProblem('')).not.toBeNull();
  expect(localPathProblem('~/x')).toContain('~');
  expect(localPathProblem('/tmp')).toBeNull();
  expect(storePathProblem('archive', ['nas'])).not.toBeNull();
  expect(storePathProblem('nsa:x', ['nas', 'eu'])).toContain('nas, eu');
  expect(storePathProblem('nas:', ['nas'])).toBeNull();
});

test('the sums of a plan and of what was done', () => {
  const transfer: Transfer = {
    path: 'data',
    direction: 'up',
    sent: 2,
    sent_bytes: 3000,
    resumed_bytes: 0,
    copied_inside: 0,
    by_length_only: 0,
    equal_by_time: 4,
    equal_by_hash: 1,
    removed: 1,
    dry_run: false,
    millis: 1500,
    would_send: [],
    only_there: [],
    left_out: [{ name: 'pipe', why: 'a pipe' }],
    failed: [],
  };
  expect(doneText([transfer])).toBe('2 files, 3.0 kB copied in 1s; 5 files there already; 1 file removed; 1 name left out');
  const plan = { ...transfer, dry_run: true, sent: 0, sent_bytes: 0, would_send: [{ name: 'a', size: 7 }] };
  expect(copySums([plan])).toMatchObject({ files: 1, bytes: 7 });
});

test('a folder is removed only by whoever types its name', () => {
  const file = { name: 'a', isFolder: false, size: 1, changed: null };
  const folder = { ...file, name: 'coco', isFolder: true };
  expect(wordToType([file, file], { files: 2 })).toBeNull();
  expect(wordToType([folder], { files: 9 })).toBe('coco');
  expect(wordToType([folder, file], { files: 10 })).toBe('10');
});

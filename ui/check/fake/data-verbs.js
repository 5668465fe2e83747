import { Refused } from './verbs.js';

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const CHANGED = '2026-11-15T11:16:18Z';

/** Files of the fake's datastores, kept with the world: whole names to sizes. */
function storesOf(world) {
  world.stores ??= {
    research: filled(),
    nas: new Map([
      ['alice/data/voc20/a.txt', 4],
      ['alice/data/voc20/b.bin', 2_800_000],
      ['alice/data/coco/c.txt', 2],
      ['alice/data/coco2017/d.txt', 9],
      ['alice/data/r\u202ede.txt', 12],
    ]),
    eu: new Map(),
  };
  return world.stores;
}

function filled() {
  const files = new Map([
    ['alice/run1/last.pt', 3_400_000_000],
    ['alice/run1/metrics.json', 412],
    ['alice/labels.json', 90_210],
    ['readme.md', 1200],
  ]);
  for (let at = 0; at < 100_000; at++) files.set(`many/shard-${String(at).padStart(6, '0')}.tar`, 1000 + at * 37);
  return files;
}

const FOLDERS = [{ name: 'data', datastore: 'nas', path: 'alice/data' }];

/** The store and the path in it that a verb's path means. */
function located(world, path) {
  const found = /^([^/:]+):(.*)$/.exec(path);
  if (found) {
    const files = storesOf(world)[found[1]];
    if (!files) throw new Refused(`no datastore is called \`${found[1]}\``, ['known: research, nas, eu']);
    return { files, store: found[1], below: found[2].replace(/^\/|\/$/g, '') };
  }
  const folder = FOLDERS.find(({ name }) => `${path}/`.startsWith(`${name}/`));
  if (!folder) throw new Refused(`\`${path}\` is in no folder of the configuration`, ['`folders:` maps folders'], 'configuration', 121);
  return { files: storesOf(world)[folder.datastore], store: folder.datastore, below: folder.path + path.slice(folder.name.length) };
}

/** Whole names only: the name itself, or everything below it. */
function at(world, path) {
  const { files, below } = located(world, path);
  const names = [...files.keys()].filter((name) => below === '' || name === below || name.startsWith(`${below}/`));
  return { files, below, names };
}

function list(world, path) {
  const { store, below } = located(world, path);
  const { files, names } = at(world, path);
  if (names.length === 0 && below !== '') throw new Refused(`there is nothing at \`${path}\``, ['`tow ls` lists what there is']);
  const prefix = below === '' ? '' : `${below}/`;
  const folders = new Set();
  const objects = [];
  for (const name of names) {
    const rest = name.slice(prefix.length);
    if (rest.includes('/')) folders.add(rest.slice(0, rest.indexOf('/')));
    else objects.push({ name: rest, size: files.get(name), changed: CHANGED });
  }
  return { path, store: `${store} (fake)`, folders: [...folders], objects };
}

function transfer(path, direction, files, more) {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return {
    path,
    direction,
    sent: more.dry_run ? 0 : files.length,
    sent_bytes: more.dry_run ? 0 : bytes,
    resumed_bytes: 0,
    copied_inside: 0,
    by_length_only: 0,
    equal_by_time: 2,
    equal_by_hash: 0,
    removed: 0,
    dry_run: false,
    millis: 1400,
    would_send: more.dry_run ? files : [],
    only_there: more.delete ? [{ name: 'old/left-over.txt', size: 12 }] : [],
    left_out: [],
    failed: [],
    ...more,
  };
}

async function copy(path, direction, files, args, tell) {
  const { dry_run = false, delete: isRemoving = false } = args;
  if (!dry_run) {
    const of = { of_files: files.length, of_bytes: files.reduce((sum, { size }) => sum + size, 0), is_total_known: true };
    for (const share of [0.1, 0.4, 0.8, 1]) {
      if (!tell.isHeard()) return { transfers: [] };
      const progress = { text: path, files: Math.floor(of.of_files * share), bytes: Math.floor(of.of_bytes * share), ...of };
      tell({ progress });
      await wait(200);
    }
  }
  return { transfers: [transfer(path, direction, files, { dry_run, delete: isRemoving, removed: isRemoving && !dry_run ? 1 : 0 })] };
}

function sizes(world, path) {
  const { files, names } = at(world, path);
  if (names.length === 0) throw new Refused(`there is nothing at \`${path}\``);
  return names.map((name) => ({ name, size: files.get(name) }));
}

const isStored = (path) => /^[^/:]+:/.test(path);

/** What the verbs about data answer. */
export const DATA_VERBS = {
  ls(world, { path }) {
    if (path !== undefined) return list(world, path);
    if (world.hasNoStores) return { folders: [], datastores: [] };
    return {
      folders: FOLDERS,
      datastores: [
        { name: 'eu', kind: 's3', place: 'towline-eu' },
        { name: 'nas', kind: 'folder', place: '/mnt/nas' },
        { name: 'research', kind: 'azure_blob', place: 'acct/data' },
      ],
    };
  },
  up: (world, { paths, ...args }, tell) => copy(paths[0], 'up', sizes(world, paths[0]), args, tell),
  down: (world, { paths, ...args }, tell) => copy(paths.join(', '), 'down', paths.flatMap((path) => sizes(world, path)), args, tell),
  async cp(world, { from, to, ...args }, tell) {
    if (isStored(to)) located(world, to);
    const files = isStored(from) ? sizes(world, from) : [{ name: from.split('/').at(-1), size: 90_000 }];
    const direction = isStored(from) ? (isStored(to) ? 'across' : 'down') : 'up';
    const answer = await copy(`${from} to ${to}`, direction, files, args, tell);
    if (!args.dry_run && isStored(to)) {
      const { files: there, below } = located(world, to);
      for (const { name, size } of files) there.set([below, name.split('/').at(-1)].filter(Boolean).join('/'), size);
    }
    return answer;
  },
  rm(world, { paths, dry_run, yes }) {
    const found = paths.map((path) => at(world, path));
    const missing = paths.find((_, index) => found[index].names.length === 0);
    if (missing) throw new Refused(`there is nothing at \`${missing}\``);
    if (!dry_run && !yes) throw new Refused('removing needs a yes, and there is no terminal to ask on', ['add --yes'], 'refused', 123);
    const names = found.flatMap((one) => one.names);
    const bytes = found.reduce((sum, { files, names: some }) => sum + some.reduce((all, name) => all + files.get(name), 0), 0);
    if (!dry_run) for (const { files, names: some } of found) some.forEach((name) => files.delete(name));
    return { paths, files: names.length, folders: 0, bytes, done: !dry_run, ...(dry_run ? { would_remove: names } : {}) };
  },
  url(world, { path, for: time, with_sas }, tell) {
    sizes(world, path);
    if (path.startsWith('research:') && !with_sas) {
      throw new Refused('a SAS cannot sign another SAS', ['or hand out the SAS itself with `--with-sas`: whoever has it can read and write everything'], 'unsupported', 123);
    }
    tell({ note: with_sas ? ' hint: warning: whoever has this address can read and write everything' : ' hint: whoever has this address can read the file' });
    return { path, url: `https://store.example/${encodeURIComponent(path)}?good-for=${time ?? '7d'}` };
  },
};

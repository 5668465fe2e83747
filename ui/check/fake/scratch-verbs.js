import { Refused } from './verbs.js';

const MINUTE = 60_000;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const iso = (milliseconds) => new Date(milliseconds).toISOString();

function backup(id, taken, more = {}) {
  const made = { id, taken: iso(taken), host: 'box', folder: '/scratch/ann/work', files: 4210, bytes: 8_100_000_000, stored: 21_000_000 };
  return { ...made, doubtful: 0, readable: true, ...more };
}

function workspacesOf(world) {
  world.workspaces ??= [
    {
      name: 'work',
      on: 'tow-node',
      path: '/scratch/ann/work',
      to: 'research:alice/backups',
      auto: '30m',
      backups: Array.from({ length: 16 }, (_, at) => backup(`8161${(0xf71056 + at * 977).toString(16)}`, world.now() - (7 + at * 31) * MINUTE, at === 3 ? { doubtful: 2 } : {})),
      failing: null,
    },
    {
      name: 'thesis\u202e',
      on: null,
      path: '/scratch/ann/thesis',
      to: null,
      auto: null,
      backups: [backup('3f2a9c01d7e4', world.now() - 3000 * MINUTE)],
      failing: {
        since: iso(world.now() - 190 * MINUTE),
        last: iso(world.now() - 10 * MINUTE),
        times: 6,
        why: '/scratch/ann/thesis is not there: there is nothing to back up',
        hints: ['is the disk mounted? `tow scratch restore` brings the last backup'],
      },
    },
  ];
  return world.workspaces;
}

function find(world, name) {
  const found = workspacesOf(world).find((one) => one.name === name);
  if (!found) throw new Refused(`no workspace is called \`${name}\``, ['`tow scratch ls` lists them']);
  return found;
}

function status({ backups, failing }) {
  const last = backups[0] ?? null;
  return { began: last?.taken ?? null, good: last?.taken ?? null, stored: last?.taken ?? null, backup: last, failing };
}

function row(one) {
  const { name, on, path, to, auto } = one;
  const state = one.failing ? 'failing' : one.backups.length > 0 ? 'good' : 'no backup';
  return { name, on, path, to, auto, state, status: status(one) };
}

async function steps(text, tell) {
  const of = { of_files: 4210, of_bytes: 8_100_000_000, is_total_known: true };
  for (const share of [0.2, 0.5, 0.9]) {
    if (!tell.isHeard()) return;
    tell({ progress: { text, files: Math.floor(of.of_files * share), bytes: Math.floor(of.of_bytes * share), ...of } });
    await wait(150);
  }
}

const KEEP = { last: 10, hourly: 24, daily: 14, weekly: 8 };

/** What the verbs about workspaces answer. */
export const SCRATCH_VERBS = {
  'scratch.ls'(world, { name }) {
    if (name === undefined) return { workspaces: workspacesOf(world).map(row) };
    const found = find(world, name);
    return { workspace: name, backups: found.backups, status: status(found) };
  },
  async 'scratch.create'(world, { name, on = null, path, to = null, auto, every }, tell) {
    if (on === 'gone') throw new Refused('there is no host called `gone`', ['correct its name'], 'unreachable', 125);
    await steps('backing up', tell);
    workspacesOf(world).push({ name, on, path, to, auto: auto ? (every ?? '30m') : null, backups: [], failing: null });
    return { workspace: name, path, on, ...(auto ? { every: every ?? '30m' } : {}) };
  },
  async 'scratch.backup'(world, { name }, tell) {
    const found = find(world, name);
    await steps('backing up', tell);
    if (found.failing) throw new Refused(found.failing.why, found.failing.hints, 'refused', 123);
    const made = backup(`b${world.now().toString(16).slice(-11)}`, world.now());
    found.backups.unshift(made);
    return { backup: made, unchanged: false, read: 12, left_out: [], unreadable: [], unsteady: ['train.log'], place: found.to ?? '~/.towline/backups', same_disk: found.to === null };
  },
  async 'scratch.restore'(world, { name, backup: id, path, on }, tell) {
    const found = find(world, name);
    if (path === '/full') throw new Refused('/full is not empty; nothing was changed', ['choose another folder: `--path FOLDER`'], 'refused', 123);
    await steps('restoring', tell);
    const chosen = found.backups.find((one) => one.id === id) ?? found.backups[0];
    const isThere = !path && !on && !found.failing;
    if (!path && on) found.on = on;
    found.failing = null;
    return { workspace: name, path: path ?? found.path, on: on ?? found.on, backup: isThere ? null : chosen };
  },
  'scratch.auto'(world, { name, every = '30m', off }) {
    const found = find(world, name);
    const wasOn = found.auto !== null;
    found.auto = off ? null : every;
    return off ? { workspace: name, auto: false, was_on: wasOn } : { workspace: name, auto: true, every, keep: KEEP };
  },
  async 'scratch.check'(world, { name, repair }, tell) {
    const found = find(world, name);
    await steps('reading', tell);
    const isDamaged = name.startsWith('thesis');
    const damage = { what: 'pack eb887659c679', how: 'other bytes than were stored at byte 0', touches: [{ backup: '3f2a9c01d7e4', files: ['src/f1.py', 'src/f2.py'] }], set_aside: false };
    return { ok: !isDamaged, backups: found.backups.length, packs: 5, bytes: 72_600_000, damage: isDamaged ? [damage] : [], dropped: repair ? 1 : 0 };
  },
  'scratch.prune'(world, { name, yes, keep_last = KEEP.last }) {
    const found = find(world, name);
    const dropped = found.backups.slice(keep_last);
    const kept = found.backups.length - dropped.length;
    if (yes) found.backups = found.backups.slice(0, keep_last);
    return { kept, dropped, packs: dropped.length, marked: 0, bytes: dropped.length * 21_000_000, done: yes ?? false, keep: { ...KEEP, last: keep_last } };
  },
};

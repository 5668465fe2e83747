import { Refused } from './verbs.js';

const iso = (milliseconds) => new Date(milliseconds).toISOString();
const OPEN_MS = 1500;

function tunnelsOf(world) {
  world.tunnels ??= [
    tunnel('box', 22222, 'gcrazgdl1234', 'bastion', { state: 'open', since: iso(world.now() - 9_000_000), reconnects: 3, pid: 811 }),
    tunnel('notebook', 22223, 'box:8888', 'bastion, login', { alias: null }),
    tunnel('old', 22224, 'gcrazgdl0001', 'jump1', {
      state: 'failing',
      since: iso(world.now() - 400_000),
      reason: '`jump1` does not let you in',
      hints: ["add your public key where the bastion's keys are managed"],
    }),
    tunnel('typo', null, 'b\u202eox', '', { state: 'wrong', reason: '`b\u202eox` is not HOST or HOST:PORT', hints: [], alias: null, origin: '/home/ann/vision/towline.yaml:14:3' }),
  ];
  return world.tunnels;
}

function tunnel(name, port, to, via, more = {}) {
  return {
    name,
    state: 'closed',
    port,
    to,
    via,
    since: null,
    reconnects: 0,
    reason: null,
    hints: [],
    alias: `tow-${name}`,
    pid: null,
    origin: `/home/ann/.config/towline/tunnels/${name}.yaml`,
    ...more,
  };
}

function find(world, name) {
  const found = tunnelsOf(world).find((one) => one.name === name);
  if (!found) throw new Refused(`no tunnel is called \`${name}\``);
  return found;
}

function open(world, found) {
  Object.assign(found, { state: 'connecting', since: iso(world.now()), reason: null, hints: [] });
  setTimeout(() => {
    if (found.state === 'connecting') Object.assign(found, { state: 'open', since: iso(world.now()), pid: 900 });
  }, OPEN_MS);
}

/** What the verbs about tunnels answer. */
export const TUNNEL_VERBS = {
  'tunnel.ls': (world) => ({ tunnels: tunnelsOf(world) }),
  'tunnel.open'(world, { names }) {
    const opened = names.map((name) => find(world, name));
    opened.forEach((one) => open(world, one));
    return { tunnels: opened.map(({ name, state, port, to, alias }) => ({ name, state, port, to, alias })) };
  },
  'tunnel.close'(world, { names }) {
    for (const name of names) Object.assign(find(world, name), { state: 'closed', since: null, reason: null, hints: [], reconnects: 0 });
    return { closed: names, already_closed: [] };
  },
  'tunnel.rm'(world, { names }) {
    for (const name of names) {
      if (find(world, name).state !== 'closed') throw new Refused(`tunnel \`${name}\` is open`, [`first: tow tunnel close ${name}`], 'conflict', 123);
    }
    world.tunnels = tunnelsOf(world).filter(({ name }) => !names.includes(name));
    return { removed: names };
  },
  'tunnel.add'(world, { name, to, via = '', port, sandbox, open: isToOpen }) {
    if (to === 'nowhere') throw new Refused('there is no host called `nowhere`', ['correct its name, or add a `Host` to your ssh configuration'], 'unreachable', 125);
    if (port === 22299) throw new Refused('port 22299 of this machine is in use by `jupyter-lab`', ['end that program, or choose another --port'], 'conflict', 123);
    const made = tunnel(name ?? `gcr${sandbox}`, port ?? 22225, to ?? `GCRAZGDL${sandbox}`, via.replaceAll(',', ', '));
    tunnelsOf(world).push(made);
    if (!isToOpen) return { name: made.name, port: made.port, to: made.to, via: made.via, file: made.origin };
    open(world, made);
    return { tunnels: [{ name: made.name, state: made.state, port: made.port, to: made.to, alias: made.alias }] };
  },
};

import { Refused } from './verbs.js';
import { RUN } from './world.js';

const MINUTE = 60_000;
const GB = 1e9;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const iso = (milliseconds) => new Date(milliseconds).toISOString();
const ANN = { name: 'ann@example.com', id: 'a1b2', tenant: '72f9aa01-0000-0000-0000-000000000000' };

const quota = (series, tier, used, limit, region = 'westus3') => ({ series, tier, used, limit, region });
const QUOTAS = [
  quota('NDH100v5', 'Premium', 64, 64),
  quota('NDH100v5', 'Standard', 120, 256),
  quota('NDH100v5', 'Basic', 31, 512),
  quota('NDAMv4', 'Standard', 8, 128),
  quota('NDAMv4', 'Basic', 0, 64),
];

/** What the fake remembers of clusters, kept with the world. */
function memory(world) {
  world.clusterMemory ??= {
    signedIn: { 'aml-west': ANN, sing: null },
    roles: [
      role('Contributor', 'research', false),
      role('Storage Blob Data Contributor', 'researchstore', true, world.now() + 95 * MINUTE),
      { ...role('Reader', 'research', true), assignment: 'assigned' },
    ],
    adopted: new Set(),
  };
  return world.clusterMemory;
}

function role(name, scope, active, until = null) {
  return {
    name,
    role_id: `role-${name.toLowerCase().replaceAll(' ', '-')}`,
    scope: `/subscriptions/5f0c/resourceGroups/${scope}`,
    scope_name: scope,
    active,
    until: until === null ? null : iso(until),
    assignment: active ? 'activated' : null,
  };
}

const CLUSTERS = {
  local: () => ({ kind: 'local', state: 'ready', cpus: 16, cpus_free: 9, gpus: 2, gpus_free: 1, default: true }),
  lab: () => ({ kind: 'slurm', state: 'ready', cpus: 1536, cpus_free: 402, gpus: 96, gpus_free: 12 }),
  'aml-west': (known) => ({
    kind: 'azureml',
    state: 'ready',
    cpus: 640,
    cpus_free: 640,
    gpus: 128,
    gpus_free: 128,
    signed_in_as: known.signedIn['aml-west'],
  }),
  sing: (known) =>
    known.signedIn.sing
      ? { kind: 'azureml', state: 'ready', cpus: null, cpus_free: null, gpus: 1024, gpus_free: 801, signed_in_as: ANN }
      : {
          kind: 'azureml',
          state: 'nobody is signed in to cluster `sing`: `tow login sing`',
          cpus: null,
          cpus_free: null,
          gpus: null,
          gpus_free: null,
          signed_in_as: null,
        },
};

function find(world, name) {
  const make = CLUSTERS[name];
  if (!make) throw new Refused(`no cluster is called \`${name}\``, [`known: ${Object.keys(CLUSTERS).join(', ')}`]);
  return { name, default: false, ...make(memory(world)) };
}

function gpus(count, used, name, run) {
  return Array.from({ length: count }, (_, index) => ({
    index,
    name,
    make: 'nvidia',
    memory: 80 * GB,
    memory_used: index < used ? 61 * GB : 0,
    run: index < used ? run : null,
    busy_with: index < used && !run ? 'bob: bert-large' : null,
  }));
}

function slurmNodes(world) {
  return Array.from({ length: 12 }, (_, at) => {
    const used = at < 6 ? 8 : at === 6 ? 4 : 0;
    const isDown = at === 10;
    return {
      name: `node-${String(at + 17).padStart(3, '0')}`,
      state: isDown ? 'drained' : used === 8 ? 'allocated' : used > 0 ? 'mixed' : 'idle',
      users: used > 0 ? (at < 4 ? ['ann'] : ['bob', 'li.wei']) : [],
      cpus: 128,
      cpus_used: used * 12,
      memory: 2000 * GB,
      memory_used: used * 220 * GB,
      gpus: gpus(8, used, at > 8 ? 'NVIDIA A100-SXM4-80GB' : 'NVIDIA H100 80GB HBM3', at < 4 ? RUN : null),
    };
  });
}

const SLURM_FACTS = {
  version: '22.05.8',
  accounting: true,
  stage: '/home/alice/.towline',
  partitions: [
    { name: 'main', is_default: true, is_up: true, longest: 604_800, usual: null, nodes: 10 },
    { name: 'debug', is_default: false, is_up: true, longest: 1800, usual: 600, nodes: 2 },
  ],
  tiers: ['normal', 'basic', 'standard', 'premium'],
  tiers_unknown: false,
  kill_wait: 30,
  signals_reach_all: true,
  runtimes: ['apptainer'],
  largest_array: 1001,
  fair_share: 'account lab: granted 33 %, used 71 %, fair share 0.25',
  maintenance: [],
  environment: [],
  something_new: { colour: 'green' },
};

const NODES = {
  local: (world) => ({
    nodes: [
      {
        name: 'box',
        cpus: 16,
        cpus_used: 7,
        memory: 64 * GB,
        memory_used: 21 * GB,
        gpus: [...gpus(1, 1, 'NVIDIA RTX 6000 Ada', RUN), { ...gpus(1, 0, 'NVIDIA RTX 6000 Ada')[0], index: 1 }],
      },
    ],
    notes: [],
  }),
  lab: (world) => ({ nodes: slurmNodes(world), notes: ['node-027 is drained: `GPU 3 fell off the bus`'], ...SLURM_FACTS }),
  'aml-west': () => ({ nodes: [], notes: [], ...azureFacts('aml', []), holders: [{ user: 'bob', nodes: 3, jobs: ['bert-large', 'bert-base'] }] }),
  sing: () => ({ nodes: [], notes: ['quotas are asked for once a minute'], ...azureFacts('singularity', QUOTAS), holders: [] }),
};

function azureFacts(flavour, quotas) {
  return {
    scope: { subscription: '5f0c', resource_group: 'research', workspace: 'vision' },
    flavour,
    location: 'westus3',
    tenant: ANN.tenant,
    studio: 'https://ml.example.com',
    instances: [{ name: 'ND96isr_H100_v5', series: 'NDH100v5', gpus: 8, cpus: 96, memory: 1900 * GB, amd: false }],
    quotas,
    images: flavour === 'singularity' ? ['base/job/pytorch/2.4', 'base/job/deepspeed/0.14'] : [],
    identities: { 'vision-uami': { id: '/subscriptions/5f0c/uami', client_id: 'c0ffee' } },
    most_nodes: 16,
    who: ANN,
  };
}

function remoteJobs(world, cluster, all) {
  const known = memory(world);
  const make = (name, user, state, more = {}) => ({
    run: null,
    job: String(4700 + name.length),
    name,
    user,
    state,
    word: state.toUpperCase(),
    reason: null,
    nodes: 2,
    ended: false,
    created: world.now() - 130 * MINUTE,
    here: false,
    ...more,
  });
  const elsewhere = 'probe-1794731300-77aa11bb';
  const jobs = [
    make(RUN, 'ann', 'running', { run: RUN, here: true, nodes: 4 }),
    make(elsewhere, 'ann', 'queued', { run: elsewhere, here: known.adopted.has(elsewhere), reason: 'Resources' }),
    make('bert\u202elarge', 'bob', 'running', { job: 'bert-large-7' }),
    ...(all ? [make('old-eval', 'li.wei', 'succeeded', { ended: true, word: 'COMPLETED' })] : []),
  ];
  return { jobs: cluster === 'lab' ? jobs : jobs.slice(1) };
}

/** What the verbs about clusters answer. */
export const CLUSTER_VERBS = {
  async clusters(world, { cluster, discover }) {
    if (discover) return wait(400).then(() => discovered());
    if (cluster === 'lab') await wait(250);
    return { clusters: (cluster ? [cluster] : Object.keys(CLUSTERS)).map((name) => find(world, name)) };
  },
  nodes(world, { cluster }) {
    const found = find(world, cluster);
    if (found.state !== 'ready') throw new Refused(found.state, [`sign in: tow login ${cluster}`], 'denied', 123);
    return NODES[cluster](world);
  },
  async login(world, { cluster, status }, tell) {
    const known = memory(world);
    find(world, cluster);
    if (status) return { sign_ins: [signIn(known, cluster)] };
    const code = 'FWXZ7K2QM';
    const address = 'https://microsoft.com/devicelogin';
    const message = `To sign in, open ${address} and enter the code ${code}`;
    tell({ part: { cluster, address, code, message, expires: iso(world.now() + 15 * MINUTE) } });
    // The sign-in takes until a test says that it is done.
    const end = Date.now() + (world.signInMs ?? 4000);
    while (Date.now() < end && tell.isHeard()) await wait(50);
    if (tell.isHeard()) known.signedIn[cluster] = ANN;
    return signIn(known, cluster);
  },
  logout(world, { cluster }) {
    const known = memory(world);
    const name = known.signedIn[cluster]?.name ?? null;
    known.signedIn[cluster] = null;
    return { cluster, signed_out: name !== null, name, also_for: [], method: 'azure_cli' };
  },
  roles: (world, { cluster }) => ({ cluster, roles: memory(world).roles }),
  async 'roles.activate'(world, args, tell) {
    if (args.for && /d$/.test(args.for)) throw new Refused('the policy of this role allows 8h', ['--for 8h'], 'refused', 123);
    tell({ note: 'requested; waiting for Azure' });
    await wait(300);
    return change(world, args, true);
  },
  'roles.deactivate': (world, args) => change(world, args, false),
  ps: (world, { cluster, all }) => remoteJobs(world, cluster, all),
  adopt(world, { id, cluster }) {
    memory(world).adopted.add(id);
    if (!world.find(id)) world.add({ id, name: 'probe', cluster, command: 'python probe.py', state: 'queued' });
    return { id, runs: [id] };
  },
  async alloc(world, { cluster, gpus: count = 0, nodes = 1, node }, tell) {
    const id = `hold-${Math.floor(world.now() / 1000)}-${(0x5d2100 + world.changes.length).toString(16).padStart(8, 'a')}`;
    world.add({ id, name: 'hold', cluster, gpus: count, nodes, tags: ['allocation'], command: 'hold', state: 'queued' });
    tell({ note: ` hint: ${id} waits for its nodes; why: \`tow why ${id.slice(-5)}\`` });
    await wait(700);
    const hosts = node ? [node] : ['node-024', 'node-025', 'node-026'].slice(0, nodes);
    world.change(id, { state: 'running', started: iso(world.now()), hosts, attempt: 1 });
    return { id, cluster, hosts, alias: 'tow-node' };
  },
  release(world, { run }) {
    world.change(run, { state: 'cancelled', reason: 'by_user', ended: iso(world.now()) });
    return { released: run };
  },
};

function change(world, { cluster, role: id, scope }, active) {
  const known = memory(world);
  const found = known.roles.find((one) => one.role_id === id && one.scope === scope);
  if (!found) throw new Refused(`you can activate no role \`${id}\``);
  const until = active ? iso(world.now() + 8 * 60 * MINUTE) : null;
  Object.assign(found, { active, until, assignment: active ? 'activated' : null });
  return { cluster, role: found, changed: true, status: active ? 'Provisioned' : 'Revoked', request: 'r1', approvers: [] };
}

function signIn(known, cluster) {
  const who = known.signedIn[cluster] ?? null;
  return {
    cluster,
    signed_in: who !== null,
    method: who ? 'device_code' : null,
    configured: false,
    signed_in_as: who,
    token_until: who ? iso(Date.now() + 55 * MINUTE) : null,
    since: who ? iso(Date.now() - 26 * 60 * MINUTE) : null,
    stored_in: who ? 'keyring' : null,
    also_for: [],
    problem: who ? null : 'the Azure CLI is not signed in: `az login`',
  };
}

function discovered() {
  return {
    workspaces: [
      {
        subscription: '5f0c0000-0000-0000-0000-000000000001',
        resource_group: 'research',
        workspace: 'vision',
        computes: [{ name: 'NC24RSV3', kind: 'AmlCompute', vm_size: 'STANDARD_NC24RS_V3', most_nodes: 16 }],
      },
    ],
    virtual_clusters: [
      {
        id: '/subscriptions/5f0c0000-0000-0000-0000-000000000001/resourceGroups/research/providers/x/virtualclusters/msrresrchvc',
        name: 'msrresrchvc',
        location: 'westus3',
        quotas: QUOTAS,
      },
    ],
    images: ['base/job/pytorch/2.4'],
    identities: ['/subscriptions/5f0c/uami'],
    notes: ['subscription `old-lab` does not answer'],
  };
}

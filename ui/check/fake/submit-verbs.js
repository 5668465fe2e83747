import { CLUSTER_VERBS } from './cluster-verbs.js';
import { checkJob, planOf } from './job-check.js';
import { Refused } from './verbs.js';
import { time } from './runs.js';

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const HOUR = 3_600_000;

/** Former submissions, not in the order of their times: the page has to sort them. */
const SUBMISSIONS = [
  {
    id: 'vitl-contitrain-1794700000-11aa22bb',
    name: 'vitl_contitrain',
    cluster: 'lab',
    hours: 30,
    runs: 1,
    command: 'torchrun --nnodes 4 train.py --lr 0.0003',
    job: {
      name: 'vitl_contitrain',
      experiment: 'hoi_experiment_v1',
      cluster: 'lab',
      resources: { nodes: 4, gpus_per_node: 8, time: '14d', tier: 'standard', location: [] },
      io: { blobmnt: { datastore: 'research', path: 'alice/work', mode: 'mount', options: ['--attr-timeout=240'] } },
      environment: { image: 'amsword/setup:py36pt16', setup: ['pip install -r requirements.txt'], env: { NCCL_IB_DISABLE: '0' } },
      tags: ['vitl'],
      script: 'ln -sfn ${{blobmnt}} blobmnt\ntorchrun --nnodes 4 train.py --lr 0.0003\n',
    },
  },
  {
    id: 'grid-1794731252-0f5b1aee',
    name: 'grid',
    cluster: 'lab',
    hours: 1,
    runs: 12,
    command: "python train.py --lr '${{lr}}' --seed '${{seed}}'",
    job: {
      name: 'grid',
      cluster: 'lab',
      resources: { gpus_per_node: 1, time: '2h' },
      sweep: { lr: ['0.1', '0.01', '0.001'], seed: '1-4' },
      command: "python train.py --lr '${{lr}}' --seed '${{seed}}'",
    },
  },
  {
    id: 'eval-1794731251-f8369a18',
    name: 'eval',
    cluster: 'aml-west',
    hours: 5,
    runs: 1,
    command: 'python eval.py --suite all',
    job: { name: 'eval', cluster: 'aml-west', resources: { gpus_per_node: 8 }, command: ['python', 'eval.py', '--suite', 'all'] },
  },
];

const TOOLKIT = `name: hoi_training_run1
cluster: msroctovc
resources: {instance_type: ND40rs_v2, nodes: 4, tier: basic}
environment:
  image: amsword/setup:py36pt16
  secrets: [GITHUB_PAT]
script: |
  python train.py
`;

/** What the page for submissions asks. */
export const SUBMIT_VERBS = {
  async 'job.check'(_, { input, cluster }) {
    await wait(80);
    const problems = checkJob(input);
    return { problems, plan: problems.length === 0 ? planOf(input, cluster) : null };
  },
  async submit(world, { input, after }, tell) {
    const problems = checkJob(input);
    if (problems.length > 0) throw new Refused(problems[0].message, problems[0].hints, 'config', 121);
    if (input.includes('no-quota')) throw new Refused('the virtual cluster `msroctovc` is not there', ['tow clusters --discover lists them'], 'refused', 123);
    if (input.includes('refuse-memory')) {
      const refused = new Refused('`sing` has no machine with that much memory', ['the largest has 1900G'], 'refused', 123);
      refused.failure.key = 'resources.memory';
      throw refused;
    }
    const plan = planOf(input);
    const total = 84_000_000;
    for (let bytes = 0; bytes < total && tell.isHeard(); bytes += 12_000_000) {
      tell({ progress: { text: 'sending the code', files: Math.floor(bytes / 200_000), bytes, of_files: 420, of_bytes: total, is_total_known: bytes > 0 } });
      await wait(input.includes('slow') ? 500 : 60);
    }
    if (!tell.isHeard()) return null;
    const isSweep = plan.runs.length > 1;
    const runs = plan.runs.map(({ id, parameters }) =>
      world.add({
        id,
        name: plan.job.name ?? 'python',
        cluster: plan.cluster,
        command: plan.command,
        sweep: isSweep ? plan.id : null,
        parameters: Object.fromEntries(parameters ?? []),
        gpus: plan.resolved.shape.nodes * plan.resolved.shape.gpus_per_node,
        ...(after ? { after: [{ run: world.runs[0].id, when: 'succeeded' }] } : {}),
      }),
    );
    return { id: plan.id, cluster: plan.cluster, runs };
  },
  clusters(world, args, tell) {
    if (!args.create_workspace) return CLUSTER_VERBS.clusters(world, args, tell);
    return { subscription: '5f0c', resource_group: 'research', workspace: args.create_workspace };
  },
  history(world, { run, limit = 30 }) {
    if (!run) {
      const submissions = SUBMISSIONS.map(({ hours, ...one }) => ({ ...one, created: time(world.now() - hours * HOUR) }));
      return { submissions: submissions.slice(0, limit) };
    }
    const found = SUBMISSIONS.find(({ id }) => id === run || run.startsWith(id));
    if (found) return found.job;
    const known = world.find(run);
    if (!known) throw new Refused(`no run \`${run}\``, ['tow ps lists them']);
    return { name: known.name, cluster: known.cluster, command: known.command };
  },
  async init(_, { explain, ignore = [] }) {
    if (!explain) throw new Refused('the fake takes no snapshot', [], 'unsupported', 123);
    await wait(60);
    return {
      root: '/home/ann/vision',
      files: 420 - ignore.length,
      bytes: 84_000_000,
      largest: [
        { name: 'configs', files: 112, bytes: 410_000 },
        { name: 'src', files: 240, bytes: 2_100_000 },
        { name: 'assets', files: 31, bytes: 79_000_000 },
      ],
      left_out: [
        { path: 'data/', why: '`data/` in .gitignore', linked: true },
        { path: 'last.pt', why: '`*.pt` in .gitignore', linked: true },
        { path: '.git/', why: 'always', linked: false },
        ...ignore.map((pattern) => ({ path: `${pattern}/`, why: `\`${pattern}\` of --ignore`, linked: true })),
      ],
    };
  },
  async sync(_, { place }, tell) {
    for (let files = 0; files <= 420 && tell.isHeard(); files += 70) {
      tell({ progress: { text: 'mirroring', files, bytes: files * 200_000, of_files: 420, of_bytes: 84_000_000, is_total_known: true } });
      await wait(60);
    }
    const none = { resumed_bytes: 0, copied_inside: 0, by_length_only: 0, equal_by_hash: 0, removed: 0, dry_run: false };
    const lists = { would_send: [], only_there: [], left_out: [], failed: [] };
    return { transfers: [{ path: place ?? 'nas:alice/code', direction: 'up', sent: 17, sent_bytes: 340_000, equal_by_time: 403, millis: 900, ...none, ...lists }] };
  },
  import(_, { tool, files, dry_run }) {
    if (files.some((file) => file.includes('missing'))) throw new Refused(`cannot read ${files[0]}: no such file`, [], 'config', 121);
    return {
      files: [
        { path: '/home/ann/vision/hoi_training_run1.tow.yaml', name: 'hoi_training_run1.tow.yaml', placement: 'new', written: !dry_run, text: TOOLKIT },
        { path: '/home/ann/vision/towline.yaml', name: 'towline.yaml', placement: 'added', written: !dry_run, text: 'clusters:\n  msroctovc: {kind: azureml}\n' },
      ],
      reports: [
        {
          source: files[0],
          mapped: [{ key: 'experiment.script', at: '12:5', says: 'script' }],
          not_needed: [],
          not_mapped: [{ key: 'storage.something', at: '3:1', says: `${tool} alone knows what it means` }],
          assumed: [],
          warnings: ['the script held a token, which was left out: `GITHUB_PAT`'],
          commands: ['secret-tool store --label=GITHUB_PAT towline GITHUB_PAT'],
        },
      ],
      notes: [],
    };
  },
  'config.show': () => ({
    values: [
      { key: 'default_cluster', value: 'local', origin: 'default' },
      { key: 'clusters.sing.kind', value: 'azureml', origin: '~/.config/towline/config.yaml' },
      { key: 'clusters.sing.virtual_cluster', value: 'msrresrchvc', origin: '~/.config/towline/config.yaml' },
      { key: 'clusters.aml-west.workspace', value: 'vision', origin: '~/.config/towline/config.yaml' },
    ],
  }),
};

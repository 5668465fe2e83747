import { random } from './random.js';

const NAMES = ['train', 'vitl_contitrain', 'eval', 'sweep-lr', 'preprocess', 'distill', 'tokenize', 'sft-7b'];
const CLUSTERS = ['local', 'lab', 'aml-west', 'sing'];
const EXPERIMENTS = ['hoi_experiment_v1', 'baseline', 'ablation-3', null, 'long-context', 'data quality'];
const TAGS = ['vitl', 'ablation', 'best', 'baseline', 'paper'];
const COMMANDS = [
  'python train.py --config configs/vitl.yaml --lr 0.0003 --epochs 40',
  'torchrun --nnodes 4 --nproc-per-node 8 train.py --resume auto',
  'python -m eval.run --suite all --checkpoint out/last.pt',
  "sh -c 'make && ./bench | tee out.txt'",
  'python preprocess.py --shards 512 --out data/packed',
];
const MINUTE = 60_000;

export const time = (moment) => (moment === null ? null : new Date(moment).toISOString());
const hex = (number) => (number >>> 0).toString(16).padStart(8, '0');

export function makeRun(changes = {}) {
  return {
    id: 'train-1794731248-5e7d81da',
    name: 'train',
    experiment: null,
    cluster: 'local',
    state: 'queued',
    reason: null,
    detail: null,
    exit_code: null,
    attempt: 0,
    tier: 'standard',
    tags: [],
    sweep: null,
    parameters: {},
    command: COMMANDS[0],
    gpus: 0,
    nodes: 1,
    ranks: 1,
    cancel_requested: false,
    held_until: null,
    created: time(0),
    started: null,
    ended: null,
    resubmits: null,
    stale_since: null,
    ...changes,
  };
}

const ENDINGS = [
  { state: 'succeeded', exit_code: 0 },
  { state: 'succeeded', exit_code: 0 },
  { state: 'succeeded', exit_code: 0 },
  { state: 'failed', reason: 'exit_code', exit_code: 1, detail: 'rank 0 left with code 1' },
  { state: 'failed', reason: 'out_of_memory', exit_code: 137, detail: 'out of memory' },
  { state: 'failed', reason: 'time_limit', exit_code: 1, detail: 'the time limit passed' },
  { state: 'cancelled', reason: 'by_user', exit_code: 143, detail: 'aborted' },
  { state: 'lost', detail: 'lab never heard of it' },
];

/** So many runs, the newest first, some of them in sweeps of sixteen. */
export function makeRuns(count, now) {
  const dice = random(7);
  const runs = [];
  let created = now - 2 * MINUTE;
  while (runs.length < count) {
    const isSweep = runs.length > 6 && dice.next() < 0.04;
    const name = dice.pick(NAMES);
    const id = `${name.replaceAll('_', '-')}-${Math.floor(created / 1000)}-${hex(dice.next() * 2 ** 32)}`;
    const shared = {
      name,
      experiment: dice.pick(EXPERIMENTS),
      cluster: dice.pick(CLUSTERS),
      command: dice.pick(COMMANDS),
      gpus: dice.pick([0, 1, 1, 2, 8, 8, 32]),
      tags: TAGS.filter(() => dice.next() < 0.15),
      created: time(created),
      tier: dice.pick(['standard', 'standard', 'basic', 'premium']),
    };
    const size = isSweep ? Math.min(16, count - runs.length) : 1;
    for (let at = 0; at < size; at++) {
      const sweep = isSweep
        ? { sweep: id, parameters: { lr: dice.pick(['0.1', '0.01', '0.001']), seed: String(at + 1) } }
        : {};
      const run = makeRun({ ...shared, ...sweep, id: isSweep ? `${id}-${at + 1}` : id });
      runs.push({ ...run, ...outcome(runs.length, created, now, dice) });
    }
    created -= Math.floor(dice.next() * 20 * MINUTE);
  }
  return runs;
}

function outcome(index, created, now, dice) {
  const waited = Math.floor(dice.next() * 5 * MINUTE);
  if (index < 2) return { attempt: 1, state: 'running', started: time(created + MINUTE), ranks: 4, gpus: 8 };
  if (index === 2) return { state: 'queued' };
  if (index === 3) return { state: 'queued', on_hold: true };
  if (index === 4) {
    const stale = { stale_since: time(now - 12 * MINUTE), stale: 'lab cannot be reached: connection timed out' };
    return { attempt: 2, state: 'running', started: time(created + MINUTE), ...stale };
  }
  if (index === 5) {
    const failed = { reason: 'exit_code', exit_code: 1, detail: 'rank 3 left with code 1' };
    return { attempt: 1, state: 'running', started: time(created), held_until: time(now + 90 * MINUTE), ...failed };
  }
  if (index < 40 && dice.next() < 0.2) return { state: 'queued' };
  if (index < 40 && dice.next() < 0.2) return { attempt: 1, state: 'running', started: time(created + waited) };
  const started = created + waited;
  const took = Math.floor(dice.next() ** 3 * 30 * 60 * MINUTE) + 4000;
  return { attempt: 1, started: time(started), ended: time(Math.min(now - 1000, started + took)), ...dice.pick(ENDINGS) };
}

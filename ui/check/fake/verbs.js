import { count } from './lists.js';
import { makeRun, time } from './runs.js';

const ENDED = ['succeeded', 'failed', 'cancelled', 'lost'];
const JOB = {
  name: 'train',
  experiment: 'hoi_experiment_v1',
  cluster: 'lab',
  resources: { nodes: 4, gpus_per_node: 8, time: '14d', tier: 'standard' },
  environment: { setup: ['pip install -r requirements.txt'], env: { NCCL_IB_DISABLE: '0' } },
  tags: ['vitl', 'ablation'],
  script: 'ln -sfn ${{blobmnt}} blobmnt\ntorchrun --nnodes 4 train.py\n',
};

export class Refused extends Error {
  constructor(message, hints = [], error = 'not_found', exit_code = 122) {
    super(message);
    this.failure = { error, message, hints, exit_code };
  }
}

function found(world, text) {
  const runs = world.of(text);
  if (runs.length === 0) throw new Refused(`no run \`${text}\``, ['tow ps lists them']);
  return runs;
}

const all = (world, texts) => texts.flatMap((text) => found(world, text));

/** What verbs answer, by name. Each gets the world and the arguments. */
export const VERBS = {
  abort(world, { runs }) {
    const targets = all(world, runs);
    const cancelling = targets.filter((run) => !ENDED.includes(run.state)).map((run) => run.id);
    for (const id of cancelling) {
      world.change(id, { cancel_requested: true }, [{ event: 'cancel_intent' }]);
      setTimeout(() => {
        const ended = { state: 'cancelled', reason: 'by_user', exit_code: 143, ended: time(world.now()) };
        world.change(id, { ...ended, cancel_requested: true });
      }, 400);
    }
    return { cancelling, already_ended: targets.map((run) => run.id).filter((id) => !cancelling.includes(id)) };
  },
  resubmit(world, { runs }) {
    return {
      resubmitted: runs.map((text) => {
        const old = found(world, text)[0];
        const id = `${old.name.replaceAll(/[^a-z0-9]+/g, '-')}-${Math.floor(world.now() / 1000)}-${(world.changes.length + 0xabc00000).toString(16)}`;
        const { name, command, cluster, gpus, experiment, tags } = old;
        world.add({ id, name, command, cluster, gpus, experiment, tags, resubmits: old.id });
        return { from: old.id, id, runs: [id] };
      }),
    };
  },
  hold: (world, { runs }) => change(world, runs, 'queued', { on_hold: true }, 'put_on_hold'),
  resume: (world, { runs }) => change(world, runs, 'queued', { on_hold: false }, 'resumed'),
  tag(world, { words }) {
    const tagged = [];
    for (const run of all(world, words.filter((word) => !/^[+-]/.test(word)))) {
      const added = words.filter((word) => word[0] === '+').map((word) => word.slice(1));
      const removed = words.filter((word) => word[0] === '-').map((word) => word.slice(1));
      const tags = [...new Set([...run.tags, ...added])].filter((tag) => !removed.includes(tag));
      tagged.push({ id: run.id, tags });
      world.change(run.id, { tags });
    }
    return { tagged, unchanged: [] };
  },
  show(world, { run: text }) {
    const runs = found(world, text);
    return runs[0].sweep === text ? shownSweep(runs) : shown(world, runs[0]);
  },
  why(world, { run: text }) {
    const runs = found(world, text);
    return runs[0].sweep === text ? whySweep(runs) : why(runs[0]);
  },
  diff: (world, { one, other }) => ({
    one,
    other,
    differences: [
      { what: 'command', one: found(world, one)[0].command, other: found(world, other)[0].command },
      { what: 'lr', one: '0.0003', other: null },
    ],
    changes: [
      '--- a/train.py\n+++ b/train.py\n@@ -12,6 +12,7 @@ def main():\n     model = build()\n-    lr = 0.001\n+    lr = 0.0003\n+    warmup = 500\n     train(model, lr)\n',
      '--- /dev/null\n+++ b/configs/new.yaml\n@@ -0,0 +1,2 @@\n+epochs: 40\n+batch: 256\n',
    ],
  }),
};

function change(world, texts, state, changes, event) {
  const runs = all(world, texts);
  const changed = runs.filter((run) => run.state === state);
  for (const run of changed) world.change(run.id, changes, [{ event }]);
  return {
    changed: changed.map((run) => run.id),
    unchanged: runs.filter((run) => !changed.includes(run)).map(({ id, state: now }) => ({ id, why: `it is ${now}` })),
  };
}

function attemptsOf(run) {
  const attempts = [];
  for (let attempt = 1; attempt <= run.attempt; attempt++) {
    const isLast = attempt === run.attempt;
    const started = isLast ? Date.parse(run.started) : Date.parse(run.created) + attempt * 600_000;
    attempts.push({
      attempt,
      started: time(started),
      ended: isLast ? run.ended : time(started + 3_000_000),
      reason: isLast ? run.reason : 'node_failed',
      exit_code: isLast ? run.exit_code : null,
      detail: isLast ? run.detail : 'node-017 went down',
    });
  }
  return attempts;
}

function eventsOf(run) {
  const events = [];
  const add = (at, event) => events.push({ sequence: events.length + 1, run: run.id, at, ...event });
  const created = Date.parse(run.created);
  add(created, { event: 'drafted' });
  add(created + 1000, { event: 'stage_intent' });
  add(created + 20_000, { event: 'submit_intent' });
  add(created + 24_000, { event: 'submitted', native: '4711' });
  for (const attempt of attemptsOf(run)) {
    const { attempt: number, started, ended, reason, exit_code, detail } = attempt;
    add(Date.parse(started) - 2000, { event: 'attempt_intent', attempt: number, runner: 'site' });
    add(Date.parse(started), { event: 'attempt_started', attempt: number });
    const ending = { cause: reason, exit_code, detail };
    if (number < run.attempt) add(Date.parse(ended), { event: 'attempt_ended', attempt: number, ending, counted: true });
    else if (ended) add(Date.parse(ended), { event: 'ended', attempt: number, ending });
  }
  return events;
}

function shown(world, run) {
  return {
    ...run,
    folder: `/home/ann/.local/state/towline/box/runs/${run.id}`,
    workdir: '/home/ann/vision',
    code: '/stage/code',
    snapshot: 'b3-6f1d09c2aa',
    commit: '4f2c1d9be8a7766554433221100ffeeddccbbaa9',
    dirty: true,
    secrets: ['GITHUB_PAT'],
    job: { ...JOB, name: run.name },
    native: run.native_state ? { id: '4711', word: run.native_state, hosts: run.hosts } : null,
    attempts: attemptsOf(run),
    logs: [],
    events: eventsOf(run),
  };
}

function shownSweep(runs) {
  const [first] = runs;
  const { name, command, cluster, tier, experiment, tags, gpus, nodes, ranks, created, started } = first;
  return {
    id: first.sweep,
    states: count(runs),
    ...{ name, command, cluster, tier, experiment, tags, gpus, nodes, ranks, created, started },
    ended: null,
    resubmits: null,
    workdir: '/home/ann/vision',
    snapshot: 'b3-6f1d09c2aa',
    commit: '4f2c1d9be8a7766554433221100ffeeddccbbaa9',
    dirty: false,
    secrets: [],
    job: { ...JOB, name, sweep: { lr: [0.1, 0.01, 0.001], seed: '1-4' } },
    runs,
  };
}

const NOTHING_KNOWN = {
  obstacle: null,
  first_failing_rank: null,
  rank: null,
  cause: null,
  evidence: null,
  error: null,
  transient: null,
  next_step: null,
  waiting: null,
};

function why(run) {
  const { id, state, reason } = run;
  if (state === 'queued') {
    const waiting = { ahead: 3, waits_for: ['8 GPUs (2 free)'], held_by: [], text: 'it waits for 8 GPUs (2 free), behind 3 other runs' };
    return { ...NOTHING_KNOWN, id, state, reason, summary: `${id} queued: ${waiting.text}`, waiting, next_step: '`tow nodes` shows who has what; `--tier premium` goes before others' };
  }
  if (state !== 'failed') return { ...NOTHING_KNOWN, id, state, reason, summary: `${id} ${state}` };
  return {
    ...NOTHING_KNOWN,
    id,
    state,
    reason,
    summary: `${id} failed: rank 0 left with code 1; rank 0's log shows: missing Python module`,
    first_failing_rank: 0,
    rank: 0,
    cause: 'missing_module',
    evidence: "ModuleNotFoundError: No module named 'sklearn'",
    transient: false,
    next_step: 'install it: add `pip install scikit-learn` to `environment.setup`',
  };
}

function whySweep(runs) {
  const failed = runs.filter((run) => run.state === 'failed');
  return {
    id: runs[0].sweep,
    summary: `${failed.length} of ${runs.length} failed`,
    states: count(runs),
    failures: failed.length === 0 ? [] : [{ reason: 'exit_code', detail: 'rank 0 left with code 1', runs: failed.map((run) => run.id) }],
    next_step: failed.length === 0 ? null : `tow why ${failed[0].id}`,
  };
}

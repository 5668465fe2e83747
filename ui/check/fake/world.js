import { count, page } from './lists.js';
import { MadeUpLog, TextLog } from './log-text.js';
import { makeRun, makeRuns, time } from './runs.js';
import { failedLog, hostileLog, trainingLog } from './sample-logs.js';

export const LONG_LOG = 'long-log-1794731000-0000aaaa';
export const HOSTILE = 'hostile-1794731000-0000bbbb';
export const RUN = 'train-1794731248-5e7d81da';
export const FAILED = 'eval-1794731251-f8369a18';
export const SWEEP = 'grid-1794731252-0f5b1aee';
const MINUTE = 60_000;

/** The runs and logs of a fake program, and what watches them. */
export class World {
  constructor({ runs = 300, now = Date.now(), longLines = 10_000_000 } = {}) {
    this.now = () => Date.now();
    this.begun = now;
    this.runs = [...named(now), ...makeRuns(runs, now)];
    this.logs = new Map();
    this.watchers = new Set();
    this.changes = [];
    this.files = new Map();
    this.longLines = longLines;
  }

  find(text) {
    return this.runs.find((run) => run.id === text) ?? this.runs.find((run) => run.id.endsWith(text));
  }

  /** All runs of a run's or sweep's id. */
  of(text) {
    const sweep = this.runs.filter((run) => run.sweep === text);
    const run = this.find(text);
    return sweep.length > 0 ? sweep : run ? [run] : [];
  }

  page(args) {
    return { ...page(this.runs, args, this.now()), cursor: this.cursor() };
  }

  counts() {
    return count(this.runs);
  }

  words() {
    const all = (pick) => [...new Set(this.runs.flatMap(pick))].filter(Boolean);
    return {
      clusters: all((run) => run.cluster),
      experiments: all((run) => run.experiment),
      tags: all((run) => run.tags),
    };
  }

  cursor() {
    return `fake-${this.changes.length}-0-0`;
  }

  /** Changes a run, and tells everybody who watches. */
  change(id, changes, events = []) {
    const run = this.find(id);
    Object.assign(run, changes);
    this.tell({ events: events.map((event) => ({ sequence: 1, run: id, at: this.now(), ...event })), runs: [run] });
    return run;
  }

  add(changes) {
    const run = makeRun({ created: time(this.now()), ...changes });
    this.runs.unshift(run);
    this.tell({ events: [], runs: [run] });
    return run;
  }

  remove(id) {
    this.runs = this.runs.filter((run) => run.id !== id);
    this.tell({ events: [], runs: [], removed: [id] });
  }

  tell(change) {
    this.changes.push({ removed: [], ...change });
    for (const watcher of this.watchers) watcher.changed();
  }

  log({ run, attempt, source }) {
    const key = JSON.stringify([run, attempt, source]);
    if (!this.logs.has(key)) this.logs.set(key, this.makeLog(run, attempt, source));
    return this.logs.get(key);
  }

  makeLog(run, attempt, source) {
    if (run === LONG_LOG) return new MadeUpLog(this.longLines);
    if (run === HOSTILE) return new TextLog(hostileLog());
    if ('set_up' in source) return new TextLog('Collecting torch\nSuccessfully installed torch-2.9.0\n');
    if (this.find(run)?.state === 'failed') return new TextLog(failedLog(source.rank));
    return new TextLog(trainingLog(source.rank, attempt));
  }

  listLogs(id) {
    const run = this.find(id);
    const logs = [];
    for (let attempt = 1; attempt <= run.attempt; attempt++) {
      const sources = [{ set_up: 0 }, ...Array.from({ length: run.ranks }, (_, rank) => ({ rank }))];
      for (const source of run.id === LONG_LOG ? [{ rank: 0 }] : sources) {
        logs.push({ attempt, source, bytes: this.log({ run: run.id, attempt, source }).bytes });
      }
    }
    return { logs };
  }

  append(log, text) {
    this.log(log).append(text);
    for (const watcher of this.watchers) watcher.changed();
  }

  cut(log, length) {
    this.log(log).cut(length);
    for (const watcher of this.watchers) watcher.changed();
  }
}

/** Runs that tests and screenshots know by name. */
function named(now) {
  const ago = (minutes) => time(now - minutes * MINUTE);
  const running = { state: 'running', attempt: 2, created: ago(190), started: ago(61) };
  const sweep = [...'abcdefghijkl'].map((_, at) => {
    const isFailed = at % 5 === 3;
    const ended = { state: isFailed ? 'failed' : 'succeeded', reason: isFailed ? 'exit_code' : null };
    const outcome = at < 8 ? { ...ended, exit_code: isFailed ? 1 : 0, ended: ago(3) } : { state: 'running' };
    return makeRun({
      id: `${SWEEP}-${at + 1}`,
      name: 'grid',
      sweep: SWEEP,
      cluster: 'lab',
      gpus: 1,
      attempt: 1,
      experiment: 'hoi_experiment_v1',
      parameters: { lr: ['0.1', '0.01', '0.001'][at % 3], seed: String(1 + Math.floor(at / 3)) },
      command: "python train.py --lr '${{lr}}' --seed '${{seed}}' --steps 60",
      created: ago(40),
      started: ago(30),
      ...outcome,
    });
  });
  return [
    makeRun({
      id: RUN,
      experiment: 'hoi_experiment_v1',
      cluster: 'lab',
      gpus: 32,
      nodes: 4,
      ranks: 4,
      tags: ['vitl', 'ablation'],
      command: 'torchrun --nnodes 4 --nproc-per-node 8 train.py --lr 0.0003 --resume auto',
      hosts: ['node-017', 'node-018', 'node-021', 'node-022'],
      native_state: 'RUNNING',
      url: 'https://portal.example/jobs/4711',
      resubmits: FAILED,
      ...running,
    }),
    makeRun({
      id: FAILED,
      name: 'eval',
      cluster: 'aml-west',
      state: 'failed',
      reason: 'exit_code',
      exit_code: 1,
      detail: 'rank 0 left with code 1',
      attempt: 1,
      gpus: 8,
      ranks: 2,
      tags: ['baseline'],
      created: ago(300),
      started: ago(290),
      ended: ago(285),
      command: 'python eval.py --suite all',
    }),
    ...sweep,
    makeRun({ id: LONG_LOG, name: 'long-log', ...running, attempt: 1, created: ago(600) }),
    makeRun({
      id: HOSTILE,
      name: 'h\u202eostile\u200b',
      experiment: '<script>alert(1)</script>',
      command: 'echo "\u202egpj.exe" && <img src=x onerror=alert(1)>',
      ...running,
      attempt: 1,
      created: ago(700),
    }),
  ];
}

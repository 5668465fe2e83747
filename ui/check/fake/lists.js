const ACTIVE = ['drafted', 'staging', 'submitting', 'queued', 'running'];
const SORTS = {
  created: (run) => Date.parse(run.created),
  started: (run) => Date.parse(run.started ?? 0),
  ended: (run) => Date.parse(run.ended ?? 0),
  took: (run, now) => (run.started ? (run.ended ? Date.parse(run.ended) : now) - Date.parse(run.started) : -1),
  name: (run) => run.name,
  state: (run) => run.state,
  cluster: (run) => run.cluster,
  experiment: (run) => run.experiment ?? '',
  gpus: (run) => run.gpus,
};

export function fits(run, filter) {
  const { states = [], clusters = [], experiments = [], tags = [], text = '', sweep = null } = filter;
  const group = ACTIVE.includes(run.state) ? 'active' : 'ended';
  if (states.length && !states.includes(run.state) && !states.includes(group)) return false;
  if (clusters.length && !clusters.includes(run.cluster)) return false;
  if (experiments.length && !experiments.includes(run.experiment)) return false;
  if (!tags.every((tag) => run.tags.includes(tag))) return false;
  if (sweep && run.sweep !== sweep) return false;
  const all = `${run.id} ${run.name} ${run.command} ${run.experiment ?? ''} ${run.tags.join(' ')}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

export function count(runs) {
  const states = {};
  for (const { state } of runs) states[state] = (states[state] ?? 0) + 1;
  return states;
}

export function page(runs, { filter = {}, sort = {}, fold = false, offset = 0, limit = 100 }, now) {
  const by = SORTS[sort.by ?? 'created'];
  const sign = sort.ascending ? 1 : -1;
  const fitting = runs.filter((run) => fits(run, filter));
  const keyed = fitting.map((run, at) => ({ run, at, key: by(run, now) }));
  keyed.sort((one, other) => {
    if (one.key !== other.key) return one.key < other.key ? -sign : sign;
    return one.at - other.at;
  });
  const rows = fold ? folded(keyed) : keyed.map(({ run }) => ({ run }));
  return { total: rows.length, states: count(fitting), rows: rows.slice(offset, offset + Math.min(limit, 1000)) };
}

function folded(keyed) {
  const sweeps = new Map();
  const rows = [];
  for (const { run } of keyed) {
    if (!run.sweep) rows.push({ run });
    else if (sweeps.has(run.sweep)) sweeps.get(run.sweep).push(run);
    else {
      sweeps.set(run.sweep, [run]);
      rows.push({ runs: sweeps.get(run.sweep) });
    }
  }
  return rows.map(({ run, runs }) => (run ? { run } : { sweep: sweepRow(runs) }));
}

export function sweepRow(runs) {
  const started = runs.map((run) => run.started).filter(Boolean).sort();
  const isOver = runs.every((run) => run.ended);
  return {
    id: runs[0].sweep,
    states: count(runs),
    started: started[0] ?? null,
    ended: isOver ? runs.map((run) => run.ended).sort().at(-1) : null,
    first: runs[0],
  };
}

// A small stand-in for the program's own check of a job file: enough to see every kind of answer.
import { LineCounter, isMap, parseDocument } from 'yaml';

const KEYS = ['name', 'experiment', 'cluster', 'resources', 'launch', 'io', 'environment', 'identity', 'code', 'copy', 'retry', 'hold_on_failure', 'sweep', 'tags', 'command', 'script'];
const CLUSTERS = ['local', 'lab', 'aml-west', 'sing'];
const SPAN = /^(\d+d)?(\d+h)?(\d+m)?(\d+s)?$|^\d+$|^(\d+-)?\d+:\d+:\d+$/i;
const list = (value) => (value === undefined || value === null ? [] : Array.isArray(value) ? value.map(String) : [String(value)]);

export function checkJob(text) {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, schema: 'failsafe' });
  if (document.errors.length > 0) {
    const { line, col } = lines.linePos(document.errors[0].pos[0]);
    return [{ key: null, line, column: col, message: document.errors[0].message.split('\n')[0], hints: [] }];
  }
  const problems = [];
  const job = document.toJS() ?? {};
  const add = (key, message, hints = []) => {
    const found = place(document, key.split('.'));
    const at = found === null ? { line: null, column: null } : { line: lines.linePos(found).line, column: lines.linePos(found).col };
    problems.push({ key, ...at, message, hints });
  };
  for (const key of Object.keys(job)) {
    if (KEYS.includes(key)) continue;
    const near = KEYS.find((known) => known.startsWith(key.slice(0, 3)));
    add(key, `unknown key \`${key}\``, near ? [`did you mean \`${near}\`?`] : []);
  }
  if (!job.command && !job.script) problems.push({ key: null, line: null, column: null, message: 'there is neither `command` nor `script`', hints: [] });
  for (const cluster of list(job.cluster)) if (!CLUSTERS.includes(cluster)) add('cluster', `no cluster is called \`${cluster}\``, [`known: ${CLUSTERS.join(', ')}`]);
  const { time, nodes, gpus_per_node: gpus, tier } = job.resources ?? {};
  if (time !== undefined && !SPAN.test(time)) add('resources.time', `\`${time}\` is no span of time`, ['write it like 2h30m or 14d']);
  for (const [key, value] of Object.entries({ nodes, gpus_per_node: gpus })) if (value !== undefined && !/^\d+$/.test(value)) add(`resources.${key}`, `\`${value}\` is no number`);
  if (tier && !['premium', 'standard', 'basic'].includes(tier)) add('resources.tier', `\`${tier}\` is no tier`);
  for (const [name, io] of Object.entries(job.io ?? {})) if (!io?.datastore) add(`io.${name}.datastore`, 'a datastore is missing', ['tow ls lists them']);
  const known = new Set([...Object.keys(job.io ?? {}), ...Object.keys(job.sweep ?? {}).flatMap((label) => label.replace(/[()]/g, '').split(',').map((name) => name.trim()))]);
  for (const key of ['script', 'command', 'name']) {
    for (const [whole, name] of list(job[key]).join('\n').matchAll(/(?<!\$)\$\{\{\s*([\w.-]+)\s*\}\}/g)) if (!known.has(name)) add(key, `\`${whole}\` is neither a name under \`io\` nor of the sweep`);
  }
  return problems;
}

function place(document, path) {
  let node = document.contents;
  let found = null;
  for (const part of path) {
    const pair = isMap(node) ? node.items.find(({ key }) => String(key.value) === part) : undefined;
    if (!pair) break;
    found = pair.key.range[0];
    node = pair.value;
  }
  return found;
}

export function planOf(text, asked) {
  const job = parseDocument(text, { schema: 'failsafe' }).toJS() ?? {};
  const cluster = asked ?? list(job.cluster)[0] ?? 'local';
  const { nodes = '1', gpus_per_node: gpus = '0', time = null, tier = 'standard', memory = null } = job.resources ?? {};
  const command = job.script ? job.script.trim().split('\n')[0] : list(job.command).join(' ');
  const name = job.name ?? command.split(' ')[0].split('/').at(-1);
  const id = `${name.toLowerCase().replace(/[^a-z0-9]+/g, '-').slice(0, 30)}-${Math.floor(Date.now() / 1000)}-${Math.floor(Math.random() * 2 ** 32).toString(16).padStart(8, '0')}`;
  const grid = combinations(job.sweep ?? {});
  const program = job.script ? { script: job.script } : Array.isArray(job.command) ? { words: job.command } : { line: job.command };
  return {
    version: 1,
    id,
    cluster,
    kind: cluster === 'local' ? 'local' : cluster === 'lab' ? 'slurm' : 'azureml',
    command,
    runs: grid.map((parameters, at) => ({ id: grid.length > 1 ? `${id}-${at + 1}` : id, name, parameters })),
    job,
    resolved: {
      shape: { nodes: Number(nodes), ranks_per_node: 1, once: false, gpus_per_node: Number(gpus), memory },
      tier,
      time,
      program,
      setup: list(job.environment?.setup),
      workdir: '/home/ann/vision',
      env: job.environment?.env ?? {},
      secrets: list(job.environment?.secrets),
      code: { root: '/home/ann/vision', files: 420, bytes: 84_000_000 },
      io: Object.entries(job.io ?? {}).map(([io, { datastore, path = '', mode = 'mount' }]) => ({ name: io, store: { name: datastore }, path, mode })),
    },
    request: { text: `#!/bin/sh\n#SBATCH --job-name=${id}\n#SBATCH --nodes=${nodes}\n#SBATCH --gpus-per-node=${gpus}\n#SBATCH --time=${time ?? 'UNLIMITED'}\n#SBATCH --output=/dev/null\n\nexec .towline/tow runner --run ${id}\n` },
    notes: cluster === 'local' && job.resources?.instance_type ? ['`resources.instance_type` has no meaning on this machine'] : [],
  };
}

function combinations(sweep) {
  let rows = [[]];
  for (const [label, choices] of Object.entries(sweep)) {
    const names = label.replace(/[()]/g, '').split(',').map((name) => name.trim());
    const values = list(choices).length === 1 && !Array.isArray(choices) ? range(String(choices)) : choices;
    rows = rows.flatMap((row) => values.map((value) => [...row, ...names.map((name, at) => [name, Array.isArray(value) ? value[at] : value])]));
  }
  return rows;
}

function range(text) {
  const found = /^(\d+)-(\d+)$/.exec(text);
  if (!found) return [text];
  return Array.from({ length: Number(found[2]) - Number(found[1]) + 1 }, (_, at) => String(Number(found[1]) + at));
}

import { quoted } from '../../words/shell';
import type { JobDocument } from './document';

export type SubmitOptions = { after: string; in_place: boolean; any_size: boolean };
export type SameCommand = { line: string | null; file: string; withoutOption: string[] };

/** Options by the key of the job file that they stand for. */
const OPTIONS: [string[], string][] = [
  [['name'], '--name'],
  [['experiment'], '--experiment'],
  [['resources', 'nodes'], '--nodes'],
  [['resources', 'instance_type'], '--instance-type'],
  [['resources', 'cpus_per_node'], '--cpus'],
  [['resources', 'memory'], '--memory'],
  [['resources', 'time'], '--time'],
  [['resources', 'tier'], '--tier'],
  [['launch'], '--launch'],
  [['hold_on_failure'], '--hold-on-failure'],
];
const LISTS: [string[], string][] = [
  [['tags'], '--tag'],
  [['resources', 'native'], '--native'],
  [['environment', 'secrets'], '--secret'],
];
const COVERED = new Set(
  [
    ...[...OPTIONS, ...LISTS].map(([path]) => path.join('.')),
    'cluster',
    'resources.gpus_per_node',
    'environment.env',
    'sweep',
    'command',
  ].flatMap((key) => [key, key.split('.')[0]!]),
);

/** What a terminal would be told. Without a line where a key has no option. */
export function sameCommand(job: JobDocument, options: SubmitOptions, sweep: string): SameCommand {
  const extra = [
    ...(options.after ? [`--after ${quoted(options.after)}`] : []),
    ...(options.in_place ? ['--in-place'] : []),
    ...(options.any_size ? ['--any-size'] : []),
  ].map((word) => ` ${word}`);
  const withoutOption = keysOf(job).filter((key) => !COVERED.has(key));
  if (job.readList(['cluster']).length > 1) withoutOption.push('several clusters');
  const file = `tow submit -f job.yaml${extra.join('')}`;
  const command = commandWords(job);
  if (withoutOption.length > 0 || command === null) return { line: null, file, withoutOption };
  const line = ['tow submit', ...words(job, sweep), ...extra.map((word) => word.trim()), command].join(' ');
  return { line, file, withoutOption };
}

function words(job: JobDocument, sweep: string): string[] {
  const [cluster] = job.readList(['cluster']);
  const nodes = Number(job.read(['resources', 'nodes']) || '1');
  const gpus = Number(job.read(['resources', 'gpus_per_node']) || '0');
  const variables = job.names(['environment', 'env']).map((name) => `${name}=${job.read(['environment', 'env', name])}`);
  const axes = sweep.split('\n').filter(Boolean).map((line) => {
    const colon = line.indexOf(':');
    return `${line.slice(0, colon)}=${line.slice(colon + 1)}`.replaceAll(/ *([,()=]) */g, '$1');
  });
  return [
    ...(cluster ? [`-c ${quoted(cluster)}`] : []),
    ...(gpus > 0 ? [`-n ${gpus * nodes}`] : []),
    ...OPTIONS.filter(([path]) => job.read(path) !== '').map(([path, option]) => `${option} ${quoted(job.read(path))}`),
    ...LISTS.flatMap(([path, option]) => job.readList(path).map((value) => `${option}=${quoted(value)}`)),
    ...variables.map((variable) => `--env ${quoted(variable)}`),
    ...axes.map((axis) => `--sweep ${quoted(axis)}`),
  ];
}

/** The keys that are set, two levels deep where the second level has options. */
function keysOf(job: JobDocument): string[] {
  return job.names([]).flatMap((key) => {
    if (key !== 'resources' && key !== 'environment') return [key];
    return job.names([key]).map((below) => `${key}.${below}`);
  });
}

function commandWords(job: JobDocument): string | null {
  const all = job.readList(['command']);
  return all.length === 0 ? null : all.map(quoted).join(' ');
}

import type { Attempt, Job, Run, Shown, ShownSweep } from '../api/types';
import { counted } from '../words/numbers';
import { reasonText } from '../words/states';
import { durationText, timeText, tookMilliseconds } from '../words/time';
import { yamlText } from '../words/yaml';

/** One run with what the history knows of it beside its row. */
export type Compared = {
  run: Run;
  job: Job | null;
  commit: string | null;
  dirty: boolean | null;
  snapshot: string | null;
  attempts: Attempt[];
};

export type Fact = { name: string; values: (string | null)[]; differs: boolean; isCode: boolean };
export type FactGroup = { name: string; facts: Fact[] };

/** The runs of an answer of `show`: of a sweep, all of them. */
export function comparedOf(shown: Shown | ShownSweep): Compared[] {
  const { job, commit, dirty, snapshot } = shown;
  if ('runs' in shown) return shown.runs.map((run) => ({ run, job, commit, dirty, snapshot, attempts: [] }));
  return [{ run: shown, job, commit, dirty, snapshot, attempts: shown.attempts }];
}

type Read = (one: Compared) => string | number | null | undefined;

/** What is compared, in groups. A fact that no run has is left out. */
export function factGroups(all: Compared[], now: number): FactGroup[] {
  const of = (name: string, read: Read, isCode = false): Fact[] => fact(name, all.map(read), isCode);
  const keyed = (prefix: string, read: (one: Compared) => Record<string, unknown>) =>
    names(all.map(read)).flatMap((name) => of(prefix + name, (one) => plain(read(one)[name]), true));
  const groups: FactGroup[] = [
    {
      name: 'How it went',
      facts: [
        ...of('Outcome', ({ run }) => [run.state, reasonText(run)].filter(Boolean).join(', ')),
        ...of('Exit code', ({ run }) => run.exit_code),
        ...of('In its words', ({ run }) => run.detail),
        ...of('Took', ({ run }) => span(run.started, run.ended, now)),
        ...of('In the queue', ({ run, attempts }) => span(run.created, firstStart(run, attempts), now)),
        ...of('Attempts', ({ run }) => run.attempt),
        ...of('Created', ({ run }) => timeText(run.created)),
        ...of('Tags', ({ run }) => run.tags.join(', ') || null),
      ],
    },
    { name: 'Parameters', facts: keyed('', ({ run }) => run.parameters) },
    {
      name: 'Where',
      facts: [
        ...of('Cluster', ({ run }) => run.cluster),
        ...of('Tier', ({ run }) => run.tier),
        ...of('GPUs', ({ run }) => run.gpus),
        ...of('Nodes', ({ run }) => run.nodes),
        ...of('Processes', ({ run }) => run.ranks),
        ...of('Hosts', ({ run }) => run.hosts?.join(', ') || null),
        ...keyed('resources.', ({ job }) => without(section(job, 'resources'), ['nodes', 'gpus_per_node', 'tier'])),
      ],
    },
    {
      name: 'What ran',
      facts: [
        ...of('Command', ({ run }) => run.command, true),
        ...of('Experiment', ({ run }) => run.experiment),
        ...of('Image', ({ job }) => plain(section(job, 'environment')['image']), true),
        ...of('Set-up', ({ job }) => plain(section(job, 'environment')['setup']), true),
        ...keyed('', ({ job }) => section(section(job, 'environment'), 'env')),
        ...keyed('io.', ({ job }) => section(job, 'io')),
        ...of('Commit', ({ commit, dirty }) => commit && `${commit.slice(0, 10)}${dirty ? ', with changes' : ''}`),
        ...of('Snapshot', ({ snapshot }) => snapshot, true),
      ],
    },
  ];
  return groups.filter(({ facts }) => facts.length > 0);
}

export function onlyDifferences(groups: FactGroup[]): FactGroup[] {
  return groups
    .map(({ name, facts }) => ({ name, facts: facts.filter(({ differs }) => differs) }))
    .filter(({ facts }) => facts.length > 0);
}

function fact(name: string, read: (string | number | null | undefined)[], isCode: boolean): Fact[] {
  const values = read.map((value) => (value === null || value === undefined || value === '' ? null : String(value)));
  if (values.every((value) => value === null)) return [];
  return [{ name, values, differs: new Set(values).size > 1, isCode }];
}

function span(from: string | null, to: string | null, now: number): string | null {
  const took = tookMilliseconds(from, to, now);
  return took === null ? null : durationText(took);
}

/** A run that never started waits still, or waited until its end. */
function firstStart(run: Run, attempts: Attempt[]): string | null {
  return attempts[0]?.started ?? run.started ?? run.ended;
}

function section(value: object | null | undefined, name: string): Record<string, unknown> {
  const found = (value as Record<string, unknown> | null | undefined)?.[name];
  return found !== null && typeof found === 'object' && !Array.isArray(found) ? (found as Record<string, unknown>) : {};
}

function without(object: Record<string, unknown>, left: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !left.includes(name)));
}

function names(objects: object[]): string[] {
  return [...new Set(objects.flatMap((object) => Object.keys(object)))];
}

function plain(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(String).join('\n') || null;
  return typeof value === 'object' ? yamlText(value).trim() : String(value);
}

/** `3 runs, 14 of 30 rows differ`. */
export function summary(all: Compared[], groups: FactGroup[]): string {
  const facts = groups.flatMap((group) => group.facts);
  const differing = facts.filter(({ differs }) => differs).length;
  return `${counted(all.length, 'run')}; ${differing} of ${counted(facts.length, 'row')} differ`;
}

import { describe, expect, it } from 'vitest';
import type { Run, Shown, ShownSweep } from '../../src/api/types';
import { comparedOf, factGroups, onlyDifferences, summary, type Compared } from '../../src/compare/compared';
import { helpFor } from '../../src/submit/failure-help';
import { mirrorArguments } from '../../src/submit/groups/mirror';
import { foreignKind } from '../../src/submit/load/file-kind';
import { planFacts } from '../../src/submit/preview/plan-facts';
import { submitArguments } from '../../src/submit/submission.svelte';

const RUN = {
  id: 'a-1-00000001',
  name: 'a',
  state: 'failed',
  reason: 'exit_code',
  exit_code: 1,
  attempt: 2,
  cluster: 'lab',
  tier: 'standard',
  tags: [],
  parameters: { lr: '0.1' },
  command: 'python x.py',
  gpus: 8,
  nodes: 1,
  ranks: 1,
  created: '2026-11-15T08:00:00Z',
  started: '2026-11-15T08:30:00Z',
  ended: '2026-11-15T09:30:00Z',
} as unknown as Run;

function compared(run: Partial<Run>, more: Partial<Compared> = {}): Compared {
  return { run: { ...RUN, ...run } as Run, job: null, commit: null, dirty: null, snapshot: null, attempts: [], ...more };
}

describe('what is compared', () => {
  const attempts = [{ attempt: 1, started: '2026-11-15T08:10:00Z' }] as Compared['attempts'];
  const job = { resources: { time: '2h', nodes: 1 }, environment: { env: { A: '1' }, image: { nvidia: 'x' } } };
  const all = [compared({}, { attempts, job }), compared({ id: 'b', gpus: 4, parameters: { lr: '0.2' } })];
  const groups = factGroups(all, 0);
  const of = (name: string) => groups.flatMap(({ facts }) => facts).find((fact) => fact.name === name);

  it('has a value for each run, and says which rows differ', () => {
    expect(of('GPUs')).toMatchObject({ values: ['8', '4'], differs: true });
    expect(of('Cluster')).toMatchObject({ values: ['lab', 'lab'], differs: false });
    expect(of('lr')).toMatchObject({ values: ['0.1', '0.2'], differs: true });
    expect(of('Outcome')).toMatchObject({ values: ['failed, exit 1', 'failed, exit 1'] });
    expect(of('Image')).toMatchObject({ values: ['nvidia: x', null] });
    expect(of('A')).toMatchObject({ values: ['1', null] });
    expect(of('resources.time')).toMatchObject({ values: ['2h', null] });
  });

  it('waits until the first attempt', () => {
    expect(of('In the queue')!.values).toEqual(['10m 00s', '30m 00s']);
    expect(of('Took')!.values).toEqual(['1h 00m', '1h 00m']);
  });

  it('leaves out what no run has', () => {
    expect(of('Hosts')).toBeUndefined();
    expect(of('resources.nodes')).toBeUndefined();
  });

  it('can be only what differs', () => {
    const names = onlyDifferences(groups).flatMap(({ facts }) => facts.map(({ name }) => name));
    expect(names).toContain('GPUs');
    expect(names).not.toContain('Cluster');
    expect(summary(all, groups)).toMatch(/^2 runs; \d+ of \d+ rows differ$/);
  });

  it('is every run of a sweep', () => {
    const sweep = { job, commit: 'c', dirty: true, snapshot: null, runs: [RUN, { ...RUN, id: 'b' }] };
    expect(comparedOf(sweep as unknown as ShownSweep).map(({ run }) => run.id)).toEqual([RUN.id, 'b']);
    expect(comparedOf({ ...RUN, attempts, job: null } as unknown as Shown)).toHaveLength(1);
  });
});

describe('what is asked of the program', () => {
  it('names the options of a submission that are set', () => {
    expect(submitArguments('a', { after: '', in_place: false, any_size: false })).toEqual({ file: '-', input: 'a' });
    expect(submitArguments('a', { after: ' x, y:ended ', in_place: true, any_size: true })).toEqual({
      file: '-',
      input: 'a',
      after: 'x,y:ended',
      in_place: true,
      any_size: true,
    });
  });

  it('leaves out the patterns of the job and of the mirror, each once', () => {
    expect(mirrorArguments({ place: ' nas:x ', ignore: 'a; b,a' }, ['b', 'c'])).toEqual({ place: 'nas:x', ignore: ['b', 'c', 'a'] });
    expect(mirrorArguments({ place: '', ignore: '' }, [])).toEqual({});
  });
});

describe('a plan in words', () => {
  it('has a line for what is set', () => {
    const plan = {
      cluster: 'lab',
      kind: 'slurm',
      runs: [{ id: 'a', name: 'a' }],
      resolved: {
        shape: { nodes: 2, ranks_per_node: 8, once: false, gpus_per_node: 8, memory: '600G' },
        tier: 'basic',
        program: { script: 'a\nb\n' },
        workdir: '/x',
      },
      request: { text: '' },
    };
    const facts = Object.fromEntries(planFacts(plan as never).map(({ name, value }) => [name, value]));
    expect(facts).toEqual({
      Cluster: 'lab (slurm)',
      Starts: 'a … (2 lines)',
      In: '/x',
      Processes: '16 on 2 nodes',
      Takes: '16 GPUs, 600G per node',
      Tier: 'basic',
    });
  });
});

describe('files of other tools', () => {
  it.each([
    ['a.json', '{"cluster": {}}', 'toolkit'],
    ['a.sh', '#!/bin/bash\n#SBATCH -N 2\n', 'sbatch'],
    ['a.yaml', 'azure_blob_config_file: x\n', 'act'],
    ['a.yaml', 'target:\n  name: x\njobs:\n- name: y\n', 'amlt'],
  ])('%s %j is known', (name, text, tool) => {
    expect(foreignKind(name, text)?.tool).toBe(tool);
  });

  it('is not what a job file is', () => {
    expect(foreignKind('job.yaml', 'name: a\ncommand: x\n')).toBe(null);
  });
});

describe('help', () => {
  it('is there for every error', () => {
    for (const error of ['config', 'unreachable', 'refused', 'not_found', 'bug']) {
      expect(helpFor(error).commands.length).toBeGreaterThan(0);
    }
  });
});

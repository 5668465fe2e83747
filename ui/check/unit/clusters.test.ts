import { expect, test } from 'vitest';
import type { GpuFacts, NodeFacts, RemoteJob } from '../../src/api/types';
import { allocArgs, allocProblems } from '../../src/clusters/alloc';
import { computeLines, virtualClusterLines } from '../../src/clusters/config-lines';
import { gpuKinds, nodeFits, nodeLook, othersOn, runsOn } from '../../src/clusters/gpus';
import { ownFacts } from '../../src/clusters/own-facts';
import { quotaSeries } from '../../src/clusters/quotas';
import { adoptId, jobFits, jobState } from '../../src/clusters/remote-jobs';
import { isLoginCode, signInLink } from '../../src/clusters/sign-in';

function gpu(changes: Partial<GpuFacts> = {}): GpuFacts {
  return { index: 0, name: 'NVIDIA H100', make: 'nvidia', memory: 1, memory_used: 0, ...changes };
}

function node(changes: Partial<NodeFacts> = {}): NodeFacts {
  return { name: 'n1', cpus: 8, cpus_used: 0, memory: 1, memory_used: 0, gpus: [], ...changes };
}

test('GPUs are counted by kind, and their users named once', () => {
  const mixed = node({ gpus: [gpu({ run: 'a' }), gpu({ run: 'a' }), gpu({ name: 'A100', busy_with: 'python' }), gpu()] });
  expect(gpuKinds(mixed.gpus)).toEqual([
    { model: 'H100', used: 2, total: 3 },
    { model: 'A100', used: 1, total: 1 },
  ]);
  expect(runsOn(mixed)).toEqual(['a']);
  expect(othersOn(mixed)).toEqual(['python']);
});

test('a node looks as it is, whatever its cluster calls that', () => {
  expect(nodeLook(node())).toBe('free');
  expect(nodeLook(node({ cpus_used: 3 }))).toBe('busy');
  expect(nodeLook(node({ cpus_used: 8 }))).toBe('full');
  expect(nodeLook(node({ gpus: [gpu({ run: 'a' }), gpu()] }))).toBe('busy');
  expect(nodeLook(node({ gpus: [gpu({ run: 'a' })] }))).toBe('full');
  for (const state of ['down*', 'drained', 'draining', 'FAIL', 'maint', 'unknown']) {
    expect(nodeLook(node({ state }))).toBe('down');
  }
});

test('nodes are found by name, state, user and kind of GPU', () => {
  const one = node({ name: 'node-017', state: 'idle', users: ['ann'], gpus: [gpu()] });
  for (const words of ['', '017', 'IDLE', 'ann h100']) expect(nodeFits(one, words)).toBe(true);
  expect(nodeFits(one, 'ann a100')).toBe(false);
});

test('quotas stand by series, the strongest tier first, with regions only where they differ', () => {
  const quota = (series: string, tier: string, region = 'west') => ({ series, tier, region, limit: 8, used: 1 });
  const found = quotaSeries([quota('H', 'Basic'), quota('H', 'Premium'), quota('A', 'Standard'), quota('A', 'Standard', 'east')]);
  expect(found.map(({ series }) => series)).toEqual(['H', 'A']);
  expect(found[0]?.lines.map(({ tier, region }) => [tier, region])).toEqual([['Premium', null], ['Basic', null]]);
  expect(found[1]?.lines.map(({ region }) => region)).toEqual(['east', 'west']);
});

test('known facts are told in words, the rest as it is, and odd shapes break nothing', () => {
  const partition = { name: 'main', is_default: true, is_up: false, longest: 604_800, usual: null, nodes: 1 };
  const { known, rest } = ownFacts({
    nodes: [],
    notes: [],
    version: '22.05',
    partitions: [partition],
    instances: 'not a list',
    tiers: ['basic'],
    tiers_unknown: true,
    new_thing: { colour: 'green' },
    nothing: null,
  });
  const told = Object.fromEntries(known.map(({ name, values }) => [name, values]));
  expect(told['Slurm']).toEqual(['22.05']);
  expect(told['Partitions']).toEqual(['main: 1 node, at most 7d, the default, takes no jobs now']);
  expect(told['Kinds of machines']).toEqual(['not a list']);
  expect(told['Qualities of service']?.[0]).toContain('not known now');
  expect(rest).toEqual([{ name: 'new thing', values: ['colour: green'] }]);
});

const JOB: RemoteJob = {
  run: null,
  job: '4711',
  name: 'bert',
  user: 'bob',
  state: 'queued',
  word: 'PENDING',
  reason: null,
  nodes: 1,
  ended: false,
  created: null,
  here: false,
};

test('a job is adopted by its run, and by its own id only where others’ jobs may be', () => {
  expect(adoptId(JOB, 'azureml')).toBe('4711');
  expect(adoptId({ ...JOB, job: null }, 'azureml')).toBe('bert');
  expect(adoptId(JOB, 'slurm')).toBeNull();
  expect(adoptId({ ...JOB, run: 'r' }, 'slurm')).toBe('r');
  expect(adoptId({ ...JOB, run: 'r', here: true }, 'slurm')).toBeNull();
});

test('the state of a job has the cluster’s word where that says more', () => {
  expect(jobState(JOB)).toBe('queued (pending)');
  expect(jobState({ ...JOB, reason: 'Resources' })).toBe('queued (Resources)');
  expect(jobState({ ...JOB, state: null, word: null })).toBe('gone');
  expect(jobFits(JOB, 'BOB pending')).toBe(true);
});

test('an allocation names what is asked for, and nothing else', () => {
  const form = { gpus: '4', nodes: '', time: ' 8h ', node: '', instanceType: '' };
  expect(allocArgs(form)).toEqual({ gpus: 4, time: '8h' });
  expect(allocProblems(form)).toEqual({});
  expect(Object.keys(allocProblems({ ...form, gpus: '-1', nodes: '0', time: 'long' }))).toEqual(['gpus', 'nodes', 'time']);
});

test('found computes and virtual clusters come as lines of a configuration', () => {
  const workspace = { subscription: 'S', resource_group: 'G', workspace: 'vision', computes: [] };
  expect(computeLines(workspace, 'NC24 v3')).toBe(
    'clusters:\n  nc24-v3:\n    kind: azureml\n    subscription: S\n    resource_group: G\n    workspace: vision\n    compute: NC24 v3\n',
  );
  const cluster = { id: '/subscriptions/s/resourceGroups/g/x/vc', name: 'vc', location: 'w', quotas: [] };
  expect(virtualClusterLines(cluster, [workspace])).toContain('virtual_cluster: vc\n');
  expect(virtualClusterLines(cluster, [{ ...workspace, subscription: 'T' }])).toContain(`virtual_cluster: ${cluster.id}\n`);
});

test('only an address of the web becomes a link to sign in at', () => {
  expect(signInLink('https://microsoft.com/devicelogin')).toBe('https://microsoft.com/devicelogin');
  for (const address of ['javascript:alert(1)', 'data:text/html,x', 'http://evil.example', 'nothing', '']) {
    expect(signInLink(address)).toBeNull();
  }
  expect(isLoginCode({ code: 'A', address: 'b' })).toBe(true);
  expect(isLoginCode({ cluster: 'aml', signed_in: true })).toBe(false);
});

import type { AzuremlInstance, PartitionFacts } from '../api/types';
import { counted, sizeText } from '../words/numbers';
import { durationText } from '../words/time';

export type OwnFact = { name: string; values: string[] };

// What `nodes` tells of every kind, and what sections of their own show.
const SHOWN_ELSEWHERE = new Set(['nodes', 'notes', 'quotas', 'holders', 'who']);

type Reader = (value: unknown, own: Record<string, unknown>) => string[];

const text: Reader = (value) => (value === null || value === '' ? [] : [String(value)]);
const yesOrNo: Reader = (value) => [value ? 'yes' : 'no'];
const list: Reader = (value) => (Array.isArray(value) ? value.map(String) : []);
const seconds = (value: number) => durationText(value * 1000).replace(/ 0+[a-z]$/, '');

const partitions: Reader = (value) =>
  (value as PartitionFacts[]).map(({ name, is_default, is_up, longest, nodes }) => {
    const limit = longest === null ? 'no time limit' : `at most ${seconds(longest)}`;
    return [
      `${name}: ${counted(nodes, 'node')}`,
      limit,
      ...(is_default ? ['the default'] : []),
      ...(is_up ? [] : ['takes no jobs now']),
    ].join(', ');
  });

const scope: Reader = (value) => {
  const { workspace, resource_group, subscription } = value as Record<string, string>;
  return [`${workspace}, resource group ${resource_group}`, `subscription ${subscription}`];
};

const FLAVOURS: Record<string, string> = {
  aml: 'a compute of Azure ML',
  itp: 'Kubernetes that is attached to a workspace',
  singularity: 'a virtual cluster of Singularity',
};

const instances: Reader = (value) =>
  (value as AzuremlInstance[]).map(
    ({ name, gpus, cpus, memory, amd }) =>
      `${name}: ${counted(gpus, `${amd ? 'AMD ' : ''}GPU`)}, ${counted(cpus, 'CPU')}, ${sizeText(memory)}`,
  );

/** Known keys, in the order in which they are told, with their names in words. */
const KNOWN: [string, string, Reader][] = [
  ['version', 'Slurm', text],
  ['flavour', 'Flavour', (value) => [FLAVOURS[String(value)] ?? String(value)]],
  ['scope', 'Workspace', scope],
  ['location', 'Region', text],
  ['tenant', 'Tenant', text],
  ['partitions', 'Partitions', partitions],
  ['tiers', 'Qualities of service', (value, own) => (own['tiers_unknown'] ? ['not known now: the database of accounts does not answer'] : list(value, own))],
  ['fair_share', 'My share', text],
  ['maintenance', 'Maintenance', list],
  ['vm_size', 'Machine', text],
  ['most_nodes', 'Most nodes', text],
  ['usual_pod', 'Usual kind of pod', text],
  ['instances', 'Kinds of machines', instances],
  ['stage', 'Files of Towline', text],
  ['runtimes', 'Container runtimes', (value) => (value as { runtime?: string; program?: string }[]).map((one) => (typeof one === 'string' ? one : (one.runtime ?? one.program ?? JSON.stringify(one))))],
  ['largest_array', 'Largest sweep', (value) => [counted(Number(value), 'run')]],
  ['kill_wait', 'Time to end in', (value) => [seconds(Number(value))]],
  ['accounting', 'Keeps accounts', yesOrNo],
  ['images', 'Images of its own', list],
  ['identities', 'Identities', (value) => Object.keys(value as object)],
  ['store_names', 'Datastores', list],
  ['environment', 'Variables of its commands', list],
];

const SAID_WITH_OTHERS = new Set(['tiers_unknown', 'signals_reach_all', 'stores', 'store']);

/** What the kind of cluster tells of itself: what is known in words, then the rest as it is. */
export function ownFacts(own: Record<string, unknown>): { known: OwnFact[]; rest: OwnFact[] } {
  const names = new Set(KNOWN.map(([key]) => key));
  const known = KNOWN.flatMap(([key, name, read]) => {
    const values = own[key] === undefined || own[key] === null ? [] : tried(read, own[key], own);
    return values.length > 0 ? [{ name, values }] : [];
  });
  const rest = Object.entries(own)
    .filter(([key]) => !names.has(key) && !SHOWN_ELSEWHERE.has(key) && !SAID_WITH_OTHERS.has(key))
    .map(([key, value]) => ({ name: key.replaceAll('_', ' '), values: plain(value) }))
    .filter(({ values }) => values.length > 0);
  return { known, rest };
}

/** A newer program may tell it in another shape, which is then shown as it is. */
function tried(read: Reader, value: unknown, own: Record<string, unknown>): string[] {
  try {
    return read(value, own);
  } catch {
    return plain(value);
  }
}

function plain(value: unknown): string[] {
  if (value === null || value === undefined || value === '') return [];
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'object' ? JSON.stringify(item) : String(item)));
  if (typeof value === 'object') {
    return Object.entries(value).map(([key, item]) => `${key}: ${typeof item === 'object' ? JSON.stringify(item) : String(item)}`);
  }
  return [String(value)];
}

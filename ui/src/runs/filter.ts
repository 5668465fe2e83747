import type { RunsFilter, Sort, SortKey } from '../api/types';
import { STATES } from '../words/states';

export type Query = { filter: RunsFilter; sort: Sort; fold: boolean };

const SORT_KEYS: SortKey[] = [
  'created',
  'started',
  'ended',
  'took',
  'name',
  'state',
  'cluster',
  'experiment',
  'gpus',
];
/** What several states are called together. */
export const STATE_GROUPS = ['active', 'ended'];
const KNOWN_STATES = new Set<string>([...STATES, ...STATE_GROUPS]);

export const EVERYTHING: RunsFilter = {
  states: [],
  clusters: [],
  experiments: [],
  tags: [],
  text: '',
};
export const NEWEST_FIRST: Sort = { by: 'created', ascending: false };

/** `state=running&state=queued&cluster=lab&text=lr&sort=-took` */
export function queryOf(address: URLSearchParams): Query {
  const sortText = address.get('sort') ?? '';
  const by = sortText.replace(/^-/, '') as SortKey;
  return {
    filter: {
      states: address.getAll('state').filter((state) => KNOWN_STATES.has(state)),
      clusters: address.getAll('cluster'),
      experiments: address.getAll('experiment'),
      tags: address.getAll('tag'),
      text: address.get('text') ?? '',
    },
    sort: SORT_KEYS.includes(by) ? { by, ascending: !sortText.startsWith('-') } : NEWEST_FIRST,
    fold: address.get('fold') !== 'no',
  };
}

/** What is as usual is left out, so that an address says what is special about it. */
export function addressOf({ filter, sort, fold }: Query): URLSearchParams {
  const address = new URLSearchParams();
  for (const state of filter.states) address.append('state', state);
  for (const cluster of filter.clusters) address.append('cluster', cluster);
  for (const experiment of filter.experiments) address.append('experiment', experiment);
  for (const tag of filter.tags) address.append('tag', tag);
  if (filter.text.trim()) address.set('text', filter.text);
  if (sort.by !== NEWEST_FIRST.by || sort.ascending) {
    address.set('sort', `${sort.ascending ? '' : '-'}${sort.by}`);
  }
  if (!fold) address.set('fold', 'no');
  return address;
}

export function isEverything(filter: RunsFilter): boolean {
  const { states, clusters, experiments, tags, text } = filter;
  return [states, clusters, experiments, tags].every((list) => !list.length) && !text.trim();
}

/** The other way round if the list goes by this already; else what one wants to see first. */
export function sortBy(sort: Sort, by: SortKey): Sort {
  if (sort.by === by) return { by, ascending: !sort.ascending };
  return { by, ascending: ['name', 'state', 'cluster', 'experiment'].includes(by) };
}

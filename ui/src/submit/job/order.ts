/** The order in which people write the keys of a job file. A new key finds its place by it. */
const ORDER: Record<string, string[]> = {
  '': [
    'name',
    'experiment',
    'tags',
    'cluster',
    'resources',
    'launch',
    'io',
    'environment',
    'identity',
    'code',
    'copy',
    'retry',
    'hold_on_failure',
    'sweep',
    'command',
    'script',
  ],
  resources: [
    'instance_type',
    'nodes',
    'gpus_per_node',
    'cpus_per_node',
    'memory',
    'time',
    'tier',
    'location',
    'account',
    'native',
  ],
  environment: ['image', 'setup', 'env', 'secrets'],
  code: ['root', 'workdir', 'ignore'],
  copy: ['datastore', 'path', 'subdirs'],
  retry: ['when', 'max'],
  image: ['nvidia', 'amd'],
  io: ['datastore', 'path', 'mode', 'options'],
};

/** Where among `names` the new name goes. `within` is the key above, or nothing. */
export function placeOf(within: string, names: string[], name: string): number {
  const order = ORDER[within] ?? [];
  const rank = order.indexOf(name);
  if (rank < 0) return names.length;
  const at = names.findIndex((other) => order.indexOf(other) > rank);
  return at < 0 ? names.length : at;
}

export function sorted(within: string, names: string[]): string[] {
  const order = ORDER[within] ?? [];
  const rank = (name: string) => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  return [...names].sort((one, other) => rank(one) - rank(other));
}

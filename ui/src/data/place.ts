import type { ConfiguredFolder, ConfiguredStores } from '../api/types';
import { formatAddress } from '../route/address';

/**
 * A folder that is looked at: of a datastore, or one that has the same path in the project and in a
 * datastore. `.` stands for the project in an address, as it does in a path.
 */
export type Place = {
  store: string | null;
  path: string[];
  /** Before paths of the project, where paths begin in a folder below it. */
  root?: string;
};

const PROJECT = '.';

export function placeOf(rest: string[], root = ''): Place | null {
  const [first, ...path] = rest;
  if (first === undefined) return null;
  if (first !== PROJECT) return { store: first, path };
  return path.length > 0 ? { store: null, path, root } : null;
}

export function placeAddress({ store, path }: Place): string {
  return formatAddress(['data', store ?? PROJECT, ...path]);
}

/** What a verb calls it: `nas:alice/data`, or `data/voc20`. */
export function verbPath({ store, path, root = '' }: Place, name?: string): string {
  const below = [...path, ...(name === undefined ? [] : [name])].join('/');
  return store === null ? root + below : `${store}:${below}`;
}

export type Crumb = { words: string; address: string };

/** The way to a place. A mapped folder is one step, whatever the number of its parts. */
export function crumbs(place: Place, folders: ConfiguredFolder[]): Crumb[] {
  const { store, path } = place;
  if (store !== null) {
    return [
      { words: store, address: placeAddress({ store, path: [] }) },
      ...path.map((words, at) => ({ words, address: placeAddress({ store, path: path.slice(0, at + 1) }) })),
    ];
  }
  const begin = mappedFolder(path, folders)?.name.split('/').length ?? 1;
  return path.flatMap((words, at) => {
    if (at < begin - 1) return [];
    const isFirst = at === begin - 1;
    const name = isFirst ? path.slice(0, begin).join('/') : words;
    return [{ words: name, address: placeAddress({ store, path: path.slice(0, at + 1) }) }];
  });
}

/** The folder of the configuration that a path is in: the longest name counts. */
export function mappedFolder(path: string[], folders: ConfiguredFolder[]): ConfiguredFolder | null {
  const text = `${path.join('/')}/`;
  const fitting = folders.filter(({ name }) => text.startsWith(`${name}/`));
  return fitting.toSorted((one, other) => other.name.length - one.name.length)[0] ?? null;
}

/** Folders and datastores from the values of the configuration, for a page that was started below the project. */
export function storesOfValues(values: { key: string; value: unknown }[]): ConfiguredStores {
  const named = (section: string) => {
    const found = new Map<string, Record<string, string>>();
    for (const { key, value } of values) {
      const match = new RegExp(`^${section}\\.(.+)\\.([a-z_]+)$`).exec(key);
      if (match?.[1] && match[2]) found.set(match[1], { ...found.get(match[1]), [match[2]]: String(value) });
    }
    return [...found];
  };
  return {
    folders: named('folders').map(([name, one]) => ({ name, datastore: one['datastore'] ?? '', path: one['path'] ?? '' })),
    datastores: named('datastores')
      .filter(([, one]) => one['kind'])
      .map(([name, one]) => ({
        name,
        kind: one['kind'] ?? '',
        place: ['account', 'container', 'bucket', 'path'].flatMap((part) => one[part] ?? []).join('/'),
      })),
  };
}

import { Asked } from '../api/asked.svelte';
import { call } from '../api/transport';
import type { About, ConfiguredStores } from '../api/types';
import { storesOfValues } from './place';

export type KnownStores = ConfiguredStores & {
  /** The machine that runs Towline, and the project on it. */
  host: string;
  project: string;
  root: string;
};

type Values = { values: { key: string; value: unknown }[] };

/** The configured folders and datastores, and where paths begin. */
export function askStores(): Asked<KnownStores> {
  return new Asked(async (signal) => {
    const about = await call<About>('about', {}, { signal });
    const isBelow = about.folder !== about.project;
    // Below the project `ls` without a path lists that folder, and not what is configured.
    const stores = isBelow
      ? storesOfValues((await call<Values>('config.show', {}, { signal })).values)
      : await call<ConfiguredStores>('ls', {}, { signal });
    return { ...stores, host: about.host, project: about.project, root: isBelow ? `${about.project}/` : '' };
  });
}

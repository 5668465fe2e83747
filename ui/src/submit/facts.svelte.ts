import { SvelteMap } from 'svelte/reactivity';
import { Asked } from '../api/asked.svelte';
import { call } from '../api/transport';
import type {
  About,
  AzuremlFacts,
  Clusters,
  ConfiguredStores,
  ConfigValues,
  Discovered,
  Nodes,
  RunsWindow,
  SiteFacts,
} from '../api/types';

export type ClusterFacts = Nodes & Partial<AzuremlFacts> & Partial<SiteFacts>;

const QUEUED = { sort: { by: 'created', ascending: false }, fold: false, offset: 0, limit: 1 };

/** What lists of the form offer. Each part is asked for alone, so that one that fails empties no other. */
export class Facts {
  about = new Asked<About>(() => call('about'));
  clusters = new Asked<Clusters>((signal) => call('clusters', {}, { signal }));
  stores = new Asked<ConfiguredStores>((signal) => call('ls', {}, { signal }));
  config = new Asked<ConfigValues>((signal) => call('config.show', {}, { signal }));
  discovered = new Asked<Discovered>((signal) => call('clusters', { discover: true }, { signal }));
  #nodes = new SvelteMap<string, Asked<ClusterFacts>>();
  #queued = new SvelteMap<string, number>();

  start(): () => void {
    void this.about.refresh().then(() => this.#countQueued());
    void this.clusters.refresh();
    void this.stores.refresh();
    return () => {
      for (const asked of [this.about, this.clusters, this.stores, this.config, this.discovered]) asked.stop();
      for (const asked of this.#nodes.values()) asked.stop();
    };
  }

  refresh(cluster: string | undefined): void {
    void this.clusters.refresh();
    void this.#countQueued();
    if (cluster) void this.nodes(cluster)?.refresh();
    if (this.discovered.value || this.discovered.error) this.discover();
  }

  discover(): void {
    void this.discovered.refresh();
    void this.config.refresh();
  }

  nodes(cluster: string): Asked<ClusterFacts> | undefined {
    return this.#nodes.get(cluster);
  }

  /** Asks once for each cluster. */
  needNodes(cluster: string): void {
    if (!cluster || this.#nodes.has(cluster)) return;
    const asked = new Asked<ClusterFacts>((signal) => call('nodes', { cluster }, { signal }));
    this.#nodes.set(cluster, asked);
    void asked.refresh();
  }

  /** How many of the reader's own runs wait there; unknown until it was counted. */
  queued(cluster: string): number | undefined {
    return this.#queued.get(cluster);
  }

  async #countQueued(): Promise<void> {
    const clusters = this.about.value?.clusters ?? [];
    await Promise.all(
      clusters.map(async ({ name }) => {
        const filter = { states: ['queued'], clusters: [name], experiments: [], tags: [], text: '' };
        const window = await call<RunsWindow>('runs.page', { ...QUEUED, filter }).catch(() => null);
        if (window) this.#queued.set(name, window.total);
      }),
    );
  }
}

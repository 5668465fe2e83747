import type { Component } from 'svelte';
import ClustersPage from './clusters/ClustersPage.svelte';
import ComparePage from './compare/ComparePage.svelte';
import DataPage from './data/DataPage.svelte';
import RunPage from './run/RunPage.svelte';
import RunsPage from './runs/RunsPage.svelte';
import SubmitPage from './submit/SubmitPage.svelte';
import SweepPage from './sweep/SweepPage.svelte';
import TunnelsPage from './tunnels/TunnelsPage.svelte';
import WorkspacesPage from './workspaces/WorkspacesPage.svelte';

/** A page gets the parts of the address behind its own: `['ID', 'logs']` of `#/run/ID/logs`. */
export type Page = {
  path: string;
  /** How the navigation calls it. A page without words is not in the navigation. */
  words?: string;
  /** Pages that belong to this one: the navigation marks it while they are shown. */
  shows?: string[];
  /** The key behind `g` that goes there. */
  key?: string;
  /** It is in the navigation only while runs are selected. */
  needsSelection?: boolean;
  component: Component<{ rest: string[] }>;
};

export const PAGES: Page[] = [
  { path: 'runs', words: 'Runs', shows: ['run', 'sweep'], key: 'r', component: RunsPage },
  { path: 'submit', words: 'Submit', key: 's', component: SubmitPage },
  { path: 'clusters', words: 'Clusters', key: 'c', component: ClustersPage },
  { path: 'data', words: 'Data', key: 'd', component: DataPage },
  { path: 'tunnels', words: 'Tunnels', key: 't', component: TunnelsPage },
  { path: 'workspaces', words: 'Workspaces', key: 'w', component: WorkspacesPage },
  { path: 'compare', words: 'Compare', needsSelection: true, component: ComparePage },
  { path: 'run', component: RunPage },
  { path: 'sweep', component: SweepPage },
];

import type { DiscoveredWorkspace, VirtualCluster } from '../api/types';
import { yamlText } from '../words/yaml';

/** A name of Azure as one of ours: letters, digits and dashes. */
export function clusterName(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, '') || 'azure';
}

function lines(name: string, cluster: object): string {
  return yamlText({ clusters: { [clusterName(name)]: { kind: 'azureml', ...cluster } } });
}

function scopeOf({ subscription, resource_group, workspace }: DiscoveredWorkspace) {
  return { subscription, resource_group, workspace };
}

export function computeLines(workspace: DiscoveredWorkspace, compute: string): string {
  return lines(compute, { ...scopeOf(workspace), compute });
}

/** A virtual cluster is used through a workspace: one beside it, if there is one. */
export function virtualClusterLines(cluster: VirtualCluster, workspaces: DiscoveredWorkspace[]): string {
  const parts = cluster.id.toLowerCase().split('/');
  const beside = workspaces.find(
    ({ subscription, resource_group }) =>
      parts.includes(subscription.toLowerCase()) && parts.includes(resource_group.toLowerCase()),
  );
  const workspace = beside ?? workspaces[0];
  const scope = workspace ? scopeOf(workspace) : { workspace: 'WORKSPACE' };
  return lines(cluster.name, { ...scope, virtual_cluster: beside ? cluster.name : cluster.id });
}

import type { GpuFacts, NodeFacts } from '../api/types';

export function isBusy(gpu: GpuFacts): boolean {
  return Boolean(gpu.run) || Boolean(gpu.busy_with);
}

/** `NVIDIA H100 80GB HBM3` → `H100 80GB HBM3`: the make says nothing where all have the same. */
function modelOf(gpu: GpuFacts): string {
  return gpu.name.replace(/^(NVIDIA|AMD)\s+/i, '') || 'GPU';
}

export type GpuKind = { model: string; used: number; total: number };

/** The GPUs of a node by their kind, in the order in which the node has them. */
export function gpuKinds(gpus: GpuFacts[]): GpuKind[] {
  const kinds = new Map<string, GpuKind>();
  for (const gpu of gpus) {
    const model = modelOf(gpu);
    const kind = kinds.get(model) ?? { model, used: 0, total: 0 };
    kind.total += 1;
    if (isBusy(gpu)) kind.used += 1;
    kinds.set(model, kind);
  }
  return [...kinds.values()];
}

/** The runs that have GPUs of a node, each once. */
export function runsOn(node: NodeFacts): string[] {
  return [...new Set(node.gpus.map((gpu) => gpu.run).filter((run) => typeof run === 'string'))];
}

/** What uses GPUs of a node and is no run. */
export function othersOn(node: NodeFacts): string[] {
  return [...new Set(node.gpus.map((gpu) => gpu.busy_with).filter((name) => typeof name === 'string'))];
}

export type NodeLook = 'free' | 'busy' | 'full' | 'down';

const DOWN = /down|drain|fail|maint|unk|error|not.?resp/i;

/** How a node is, for an icon beside the cluster's own word. */
export function nodeLook(node: NodeFacts): NodeLook {
  if (node.state && DOWN.test(node.state)) return 'down';
  const used = node.gpus.filter(isBusy).length;
  if (node.gpus.length > 0) {
    return used === 0 ? (node.cpus_used > 0 ? 'busy' : 'free') : used < node.gpus.length ? 'busy' : 'full';
  }
  if (node.cpus_used === 0) return 'free';
  return node.cpus_used < node.cpus ? 'busy' : 'full';
}

/** Whether a node has the words in its name, state, users or kinds of GPUs. */
export function nodeFits(node: NodeFacts, words: string): boolean {
  const kinds = gpuKinds(node.gpus).map(({ model }) => model);
  const text = [node.name, node.state ?? '', ...(node.users ?? []), ...kinds].join(' ').toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

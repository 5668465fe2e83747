import type { DryRun, Program } from '../../api/types';
import { counted, countText, sizeText } from '../../words/numbers';

/** The job as it would run, a line for each thing that is set. */
export function planFacts(plan: DryRun): { name: string; value: string }[] {
  const { resolved } = plan;
  const { shape, code, container } = resolved;
  const ranks = shape.once ? 1 : shape.nodes * shape.ranks_per_node;
  const gpus = shape.nodes * shape.gpus_per_node;
  const facts: [string, string | null | undefined | false][] = [
    ['Runs', plan.runs.length > 1 && counted(plan.runs.length, 'run')],
    ['Cluster', `${plan.cluster} (${plan.kind})`],
    ['Starts', programText(resolved.program)],
    ['In', resolved.workdir],
    ['Processes', `${countText(ranks)} on ${counted(shape.nodes, 'node')}`],
    ['Takes', [counted(gpus, 'GPU'), shape.cpus_per_node && `${counted(shape.cpus_per_node, 'CPU')} per node`, shape.memory && `${shape.memory} per node`].filter(Boolean).join(', ')],
    ['Tier', resolved.tier],
    ['Time limit', resolved.time && String(resolved.time)],
    ['Code', code && `${counted(code.files, 'file')}, ${sizeText(code.bytes)} from ${code.root}`],
    ['Image', container && `${container.image} with ${container.runtime}`],
    ['Set-up', resolved.setup?.join('; ')],
    ['Data', resolved.io?.map((io) => `${io.name}: ${io.mode} ${io.store.name}:${io.path}`).join('; ')],
    ['Copies', resolved.copy && `${resolved.copy.store.name}:${resolved.copy.path}`],
    ['Variables', resolved.env && Object.keys(resolved.env).join(', ')],
    ['Secrets', resolved.secrets?.join(', ')],
    ['Inherits', resolved.inherited?.length && counted(resolved.inherited.length, 'variable of the shell of tow ui', 'variables of the shell of tow ui')],
    ['After', plan.after?.map(({ run, when }) => `${run} (${when})`).join(', ')],
  ] as [string, string | null | undefined | false][];
  return facts.flatMap(([name, value]) => (value ? [{ name, value }] : []));
}

function programText(program: Program): string {
  if ('words' in program) return program.words.join(' ');
  if ('line' in program) return program.line;
  const lines = program.script.trim().split('\n');
  return lines.length > 1 ? `${lines[0]} … (${lines.length} lines)` : (lines[0] ?? '');
}

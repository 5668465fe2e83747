import { countProblem, problemsOf, spanProblem, withoutEmpty } from '../words/input';

export type AllocForm = { gpus: string; nodes: string; time: string; node: string; instanceType: string };

export function allocProblems(form: AllocForm) {
  return problemsOf({
    gpus: countProblem(form.gpus),
    nodes: countProblem(form.nodes, 1),
    time: spanProblem(form.time),
  });
}

export function allocArgs(form: AllocForm) {
  return withoutEmpty({
    gpus: form.gpus.trim() === '' ? '' : Number(form.gpus),
    nodes: form.nodes.trim() === '' ? '' : Number(form.nodes),
    time: form.time.trim(),
    node: form.node.trim(),
    instance_type: form.instanceType.trim(),
  });
}

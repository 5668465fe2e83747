import { problemsOf, spanProblem, withoutEmpty } from '../words/input';

export type CreateForm = {
  name: string;
  on: string;
  path: string;
  to: string;
  setup: string;
  ignore: string;
  isAuto: boolean;
  every: string;
};

export const EMPTY_FORM: CreateForm = {
  name: 'work',
  on: '',
  path: '',
  to: '',
  setup: '',
  ignore: '',
  isAuto: true,
  every: '',
};

/** A whole path: the shell that would know the rest is on the other machine. */
export function pathProblem(path: string): string | null {
  const text = path.trim();
  if (text === '') return 'a folder, such as /scratch/$USER/work';
  return /^[/~]|^\$[A-Z]/.test(text) ? null : 'a whole path, which begins with / or ~';
}

export function createProblems(form: CreateForm, known: string[]) {
  const name = form.name.trim();
  return problemsOf({
    name: name === '' ? 'a name' : known.includes(name) ? `there is a workspace ${name} already` : null,
    path: pathProblem(form.path),
    every: form.isAuto ? spanProblem(form.every) : null,
  });
}

const lines = (text: string) => text.split('\n').map((line) => line.trim()).filter(Boolean);

export function createArgs(form: CreateForm) {
  return withoutEmpty({
    name: form.name.trim(),
    on: form.on.trim(),
    path: form.path.trim(),
    to: form.to.trim(),
    setup: lines(form.setup).length > 0 ? lines(form.setup) : '',
    ignore: lines(form.ignore).length > 0 ? lines(form.ignore) : '',
    auto: form.isAuto,
    every: form.isAuto ? form.every.trim() : '',
  });
}

export type RestoreForm = { where: 'same' | 'machine' | 'folder'; on: string; path: string; only: string; withSetUp: boolean };

export function restoreProblems(form: RestoreForm) {
  return problemsOf({
    on: form.where === 'machine' && form.on.trim() === '' ? 'a host, as ssh knows it' : null,
    path: form.where === 'folder' ? pathProblem(form.path) : null,
  });
}

export function restoreArgs(name: string, backup: string | null, form: RestoreForm) {
  const only = lines(form.only);
  return withoutEmpty({
    name,
    backup: backup ?? '',
    on: form.where === 'machine' ? form.on.trim() : '',
    path: form.where === 'folder' ? form.path.trim() : '',
    only: form.where === 'folder' && only.length > 0 ? only : '',
    setup: form.withSetUp,
  });
}

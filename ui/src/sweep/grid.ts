import type { Run } from '../api/types';

export type GridSort = { by: string; ascending: boolean };

/** The parameters of a sweep, in the order of the job file. */
export function parametersOf(runs: Run[]): string[] {
  return [...new Set(runs.flatMap((run) => Object.keys(run.parameters)))];
}

const byText = new Intl.Collator('en', { numeric: true });

/** The runs by a parameter, as numbers where all its values are numbers; or as they were made. */
export function sorted(runs: Run[], sort: GridSort | null): Run[] {
  if (!sort) return [...runs].sort((one, other) => byText.compare(one.id, other.id));
  const { by, ascending } = sort;
  const value = (run: Run) => (by === 'state' ? run.state : (run.parameters[by] ?? ''));
  const isNumeric = runs.every((run) => value(run) !== '' && Number.isFinite(Number(value(run))));
  const compare = isNumeric
    ? (one: Run, other: Run) => Number(value(one)) - Number(value(other))
    : (one: Run, other: Run) => byText.compare(value(one), value(other));
  return [...runs].sort((one, other) => (ascending ? compare(one, other) : compare(other, one)));
}

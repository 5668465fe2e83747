import type { Row, Run } from '../api/types';

export function idOf(row: Row): string {
  return 'run' in row ? row.run.id : row.sweep.id;
}

/** The run, or the first of a sweep, which tells what its runs share. */
export function runOf(row: Row): Run {
  return 'run' in row ? row.run : row.sweep.first;
}

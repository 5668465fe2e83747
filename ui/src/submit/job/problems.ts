import type { JobProblem } from '../../api/types';
import type { JobDocument } from './document';
import { lineOfPath, pathOfKey, pathOfLine } from './places';

/** A problem with the field that shows it, and the line that it is about. */
export type Placed = JobProblem & { field: string | null; line: number | null };

/**
 * Gives each problem to the field whose key is the longest beginning of its own. A problem without
 * a key belongs to the key of its line.
 */
export function placed(problems: JobProblem[], document: JobDocument, fields: Iterable<string>): Placed[] {
  const known = [...fields];
  return problems.map((problem) => {
    const ofLine = problem.line === null ? [] : pathOfLine(document, problem.line);
    const path = problem.key ? pathOfKey(document, problem.key) : ofLine;
    const field = fieldOf(path.map(String), known);
    return { ...problem, field, line: problem.line ?? lineOfPath(document, path) };
  });
}

/** Fields are named by their paths, written as `a › b`, because names may hold dots. */
export function fieldName(path: readonly (string | number)[]): string {
  return path.join(' › ');
}

export function fieldOf(path: string[], fields: string[]): string | null {
  for (let length = path.length; length > 0; length--) {
    const name = fieldName(path.slice(0, length));
    if (fields.includes(name)) return name;
  }
  // The whole of a group, such as `io.data`, is shown by its first field.
  const below = path.length > 0 && fields.find((field) => field.startsWith(`${fieldName(path)} › `));
  return below || null;
}

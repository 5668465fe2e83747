import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { Document, Node, Pair, Scalar, SchemaOptions, YAMLMap } from 'yaml';

export type Path = (string | number)[];
export type SyntaxProblem = { line: number; column: number; message: string };

// Each key of a job file decides the type of its value, so scalars stay the text that was written:
// `0.10` is not read as a number. Only what YAML itself means otherwise is recognised.
const READING: SchemaOptions = { schema: 'failsafe', customTags: ['null', 'bool'] };

/** A job file that can be asked for values and for the places of its keys. */
export class JobDocument {
  readonly lines = new LineCounter();
  readonly tree: Document.Parsed;
  readonly problems: SyntaxProblem[];

  constructor(readonly text: string) {
    this.tree = parseDocument(text, { ...READING, lineCounter: this.lines, prettyErrors: false });
    this.problems = this.tree.errors.map(({ message, pos }) => {
      const { line, col } = this.lines.linePos(pos[0]);
      return { line, column: col, message };
    });
    const contents = this.tree.contents;
    const isMapping = contents === null || isMap(contents) || (isScalar(contents) && textOf(contents) === '');
    if (this.problems.length === 0 && !isMapping) {
      this.problems.push({ line: 1, column: 1, message: 'a job file is keys with values' });
    }
  }

  get isSound(): boolean {
    return this.problems.length === 0;
  }

  node(path: Path): Node | undefined {
    let found: unknown = this.tree.contents;
    for (const part of path) {
      found = child(this.#resolved(found), part);
      if (found === undefined) return undefined;
    }
    return this.#resolved(found) as Node | undefined;
  }

  has(path: Path): boolean {
    return this.node(path) !== undefined;
  }

  /** The text of a scalar as it is meant, or nothing. */
  read(path: Path): string {
    return textOf(this.node(path));
  }

  /** The texts of a list; a single text counts as a list of one. */
  readList(path: Path): string[] {
    const found = this.node(path);
    if (isSeq(found)) return found.items.map((item) => textOf(this.#resolved(item)));
    const text = textOf(found);
    return text === '' ? [] : [text];
  }

  /** The names of the keys of a mapping, in their order. */
  names(path: Path): string[] {
    const found = this.node(path);
    return isMap(found) ? found.items.map(({ key }) => textOf(key)) : [];
  }

  isMapping(path: Path): boolean {
    return isMap(this.node(path));
  }

  #resolved(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.tree) : node;
  }
}

function child(node: unknown, part: string | number): unknown {
  if (isMap(node)) return pairOf(node, String(part))?.value ?? undefined;
  if (isSeq(node)) return node.items[Number(part)];
  return undefined;
}

export function pairOf(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find(({ key }) => textOf(key) === name);
}

export function textOf(node: unknown): string {
  if (!isScalar(node) || node.value === null) return '';
  const { value, source } = node as Scalar;
  return typeof value === 'string' ? value : (source ?? String(value));
}

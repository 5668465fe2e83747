import { isMap, isNode, isScalar, isSeq } from 'yaml';
import type { Node } from 'yaml';
import { JobDocument, textOf, type Path } from './document';

/** The parts of a dotted key, as far as the file has them: names may hold dots themselves. */
export function pathOfKey(document: JobDocument, key: string): Path {
  const path: Path = [];
  let rest = key.replaceAll(/\[(\d+)\]/g, '.$1');
  while (rest !== '') {
    const names = document.names(path).filter((name) => rest === name || rest.startsWith(`${name}.`));
    const longest = names.sort((one, other) => other.length - one.length)[0];
    const part = longest ?? rest.split('.')[0]!;
    path.push(/^\d+$/.test(part) && !longest ? Number(part) : part);
    rest = rest.slice(part.length + 1);
  }
  return path;
}

/** The line, from 1, of the last part of a key that the file has. */
export function lineOfPath(document: JobDocument, path: Path): number | null {
  for (let length = path.length; length > 0; length--) {
    const start = startOf(document, path.slice(0, length));
    if (start !== null) return document.lines.linePos(start).line;
  }
  return null;
}

function startOf(document: JobDocument, path: Path): number | null {
  const parent = document.node(path.slice(0, -1));
  const last = path.at(-1);
  if (isMap(parent)) {
    const pair = parent.items.find(({ key }) => textOf(key) === String(last));
    return isNode(pair?.key) ? (pair.key.range?.[0] ?? null) : null;
  }
  const item = isSeq(parent) ? parent.items[Number(last)] : undefined;
  return isNode(item) ? (item.range?.[0] ?? null) : null;
}

/** The deepest key that a line belongs to. */
export function pathOfLine(document: JobDocument, line: number): Path {
  const path: Path = [];
  let node: unknown = document.tree.contents;
  for (;;) {
    const found = partAt(document, node, line);
    if (!found) return path;
    path.push(found.part);
    node = found.value;
  }
}

function partAt(document: JobDocument, node: unknown, line: number): { part: string | number; value: unknown } | null {
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      if (!isNode(key)) continue;
      const end = isNode(value) && value.range ? value : key;
      if (covers(document, key, end, line)) return { part: textOf(key), value };
    }
  }
  if (isSeq(node)) {
    const at = node.items.findIndex((item) => isNode(item) && covers(document, item, item, line));
    if (at >= 0) return { part: at, value: node.items[at] };
  }
  return null;
}

function covers(document: JobDocument, first: Node, last: Node, line: number): boolean {
  if (!first.range || !last.range) return false;
  // The end of a block of lines is the begin of the line behind it.
  const end = isScalar(last) || last.range[1] > last.range[0] ? last.range[1] - 1 : last.range[1];
  const from = document.lines.linePos(first.range[0]).line;
  return line >= from && line <= document.lines.linePos(Math.max(first.range[0], end)).line;
}

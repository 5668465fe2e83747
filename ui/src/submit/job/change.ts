import { isMap, isScalar, isSeq, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { JobDocument, pairOf, textOf, type Path } from './document';
import { placeOf } from './order';
import { splice } from './splice';

/** What can be written: a text, a list, or keys with texts and lists. */
export type Value = string | Value[] | { [key: string]: Value };

const LONGEST_LIST = 72;
const LOOKS_LIKE_NUMBER = /^[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|^0[xo][\da-fA-F]+$/;

export type How = {
  /** Numbers are quoted too, because the key wants a text whatever it looks like. */
  isText?: boolean;
  /** Lines that a shell runs: always as a block. */
  isScript?: boolean;
  /** An empty text is a value, and not the end of the key. */
  mayBeEmpty?: boolean;
};

/** The text with a value at a path. Nothing, an empty list or no keys take the path away. */
export function written(text: string, path: Path, value: Value | undefined, how: How = {}): string {
  const document = new JobDocument(text);
  if (!document.isSound) return text;
  const tree = document.tree;
  if (!isMap(tree.contents)) tree.contents = new YAMLMap(tree.schema) as never;
  if (value === undefined || (isEmpty(value) && !how.mayBeEmpty)) remove(tree.contents, path);
  else put(tree.contents, path, value, how);
  return splice(document, String(path[0]));
}

/** The text with another name for a key; its value and its place stay. */
export function renamed(text: string, path: Path, name: string): string {
  const document = new JobDocument(text);
  const parent = document.node(path.slice(0, -1));
  const pair = isMap(parent) ? pairOf(parent, String(path.at(-1))) : undefined;
  if (!document.isSound || !pair || !isMap(parent) || pairOf(parent, name)) return text;
  pair.key = scalar(name, {});
  return splice(document, String(path[0]));
}

/** The text with an item of a list changed, added behind the last, or taken away. */
export function withItem(text: string, path: Path, at: number, value: string | undefined): string {
  const items = new JobDocument(text).readList(path);
  if (value === undefined) items.splice(at, 1);
  else items[at] = value;
  return written(text, path, items);
}

function isEmpty(value: Value): boolean {
  return typeof value === 'string' ? value === '' : Object.keys(value).length === 0;
}

function remove(map: unknown, [first, ...rest]: Path): void {
  if (!isMap(map)) return;
  const pair = pairOf(map, String(first));
  if (!pair) return;
  if (rest.length > 0) {
    remove(pair.value, rest);
    if (!isMap(pair.value) || pair.value.items.length > 0) return;
  }
  map.items.splice(map.items.indexOf(pair), 1);
}

function put(map: unknown, [first, ...rest]: Path, value: Value, how: How, within = ''): void {
  if (!isMap(map)) return;
  const name = String(first);
  const pair = pairOf(map, name) ?? added(map, name, within);
  // The keys of one `io` are ordered whatever its name is.
  const below = within === 'io' ? 'io' : name;
  if (rest.length === 0) pair.value = updated(pair.value, value, how);
  else {
    if (!isMap(pair.value)) pair.value = new YAMLMap();
    put(pair.value, rest, value, how, below);
  }
}

function added(map: YAMLMap, name: string, within: string): Pair {
  const names = map.items.map(({ key }) => textOf(key));
  const pair: Pair = new Pair(new Scalar(name));
  map.items.splice(placeOf(within, names, name), 0, pair);
  return pair;
}

/** The node with another value. Comments and the way it is written stay where that can be. */
function updated(node: unknown, value: Value, how: How): unknown {
  if (typeof value === 'string') return isScalar(node) ? changed(node, value, how) : scalar(value, how);
  if (Array.isArray(value)) return isSeq(node) ? changedList(node, value, how) : list(value, how);
  const map = isMap(node) ? node : new YAMLMap();
  const old = new Map(map.items.map((pair) => [textOf(pair.key), pair]));
  map.items = Object.entries(value).map(([name, item]) => {
    const pair = old.get(name) ?? new Pair(new Scalar(name));
    pair.value = updated(pair.value, item, how);
    return pair;
  }) as typeof map.items;
  return map;
}

function changed(node: Scalar, value: string, how: How): Scalar {
  const fresh = scalar(value, how);
  // An empty text had to be quoted; what it becomes has not.
  const isPlain = node.type === undefined || node.type === 'PLAIN' || textOf(node) === '';
  const staysNumber = isPlain && LOOKS_LIKE_NUMBER.test(textOf(node)) && LOOKS_LIKE_NUMBER.test(value);
  if (staysNumber) fresh.type = 'PLAIN';
  else if (fresh.type === undefined && !isPlain && !value.includes('\n') && node.type?.startsWith('QUOTE')) {
    fresh.type = node.type!;
  }
  if (node.comment) fresh.comment = node.comment;
  if (node.commentBefore) fresh.commentBefore = node.commentBefore;
  if (node.spaceBefore) fresh.spaceBefore = node.spaceBefore;
  if (node.anchor) fresh.anchor = node.anchor;
  return fresh;
}

function changedList(node: YAMLSeq, values: Value[], how: How): YAMLSeq {
  const isSameLength = node.items.length === values.length;
  const unused = [...node.items];
  node.items = values.map((value, at) => {
    const same = unused.find((item) => typeof value === 'string' && isScalar(item) && textOf(item) === value);
    if (same !== undefined) unused.splice(unused.indexOf(same), 1);
    return same ?? updated(isSameLength ? node.items[at] : undefined, value, how);
  });
  if (!fitsOneLine(values)) node.flow = false;
  return node;
}

function list(values: Value[], how: How): YAMLSeq {
  const node = new YAMLSeq();
  node.items = values.map((value) => updated(undefined, value, how));
  node.flow = fitsOneLine(values);
  return node;
}

function fitsOneLine(values: Value[]): boolean {
  const text = values.flat().join(', ');
  return text.length <= LONGEST_LIST && !text.includes('\n');
}

function scalar(value: string, { isText, isScript }: How): Scalar {
  const node = new Scalar(value);
  if (isScript || value.includes('\n')) node.type = 'BLOCK_LITERAL';
  else if (isText && LOOKS_LIKE_NUMBER.test(value)) node.type = 'QUOTE_DOUBLE';
  return node;
}

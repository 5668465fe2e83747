import type { JobDocument } from './document';
import { isSeq } from 'yaml';
import type { Value } from './change';

// The sweep as people type it: `lr: 0.1, 0.01` or `(a, b): (1, 2), (3, 4)`. Commas and line ends
// separate values and entries alike; quotes protect.

type Token = { kind: 'word' | 'quoted' | '(' | ')' | ',' | ':' | 'line'; text: string };
export type SweepValues = { [name: string]: Value };
export type SweepRead = { sweep: SweepValues; wrong: string | null };

const NAME = /^[\w.-]+$/;
const RANGE = /^(\d+)-(\d+)$/;
const MOST_IN_RANGE = 100_000;

class WrongSweep extends Error {}

export function parseSweep(text: string): SweepRead {
  try {
    return { sweep: entries(tokens(text)), wrong: null };
  } catch (error) {
    if (!(error instanceof WrongSweep)) throw error;
    return { sweep: {}, wrong: error.message };
  }
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  const pattern = /[ \t\r]*(?:(\n)|([(),:])|'([^'\n]*)'|"([^"\n]*)"|((?:[^\s,:()'"]|:(?=[^\s,(]))+))/gy;
  let end = 0;
  while (end < text.trimEnd().length) {
    pattern.lastIndex = end;
    const match = pattern.exec(text);
    if (!match) throw new WrongSweep('a quote is not closed');
    const [, line, sign, single, double, word] = match;
    if (line) found.push({ kind: 'line', text: '\n' });
    else if (sign) found.push({ kind: sign as Token['kind'], text: sign });
    else if (word !== undefined) found.push({ kind: 'word', text: word });
    else found.push({ kind: 'quoted', text: single ?? double ?? '' });
    end = pattern.lastIndex;
  }
  return found;
}

function entries(all: Token[]): SweepValues {
  const sweep: SweepValues = {};
  let at = 0;
  const skip = () => {
    while (all[at]?.kind === ',' || all[at]?.kind === 'line') at++;
  };
  for (skip(); at < all.length; skip()) {
    const label = labelAt(all, at);
    if (!label) throw new WrongSweep('write a name and its values: `lr: 0.1, 0.01`');
    at = label.end;
    const { names } = label;
    const name = names.length > 1 ? `(${names.join(', ')})` : names[0]!;
    const values: Value[] = [];
    let range: string | null = null;
    for (skip(); at < all.length && !labelAt(all, at); skip()) {
      const value = valueAt(all, at, names);
      at = value.end;
      values.push(...value.values);
      range = value.range;
    }
    if (values.length === 0) throw new WrongSweep(`\`${name}\` has no value`);
    if (name in sweep) throw new WrongSweep(`\`${name}\` is given twice`);
    // A single range stays one, as the job file can say it too.
    const isRange = range !== null && RANGE.test(range) && countOf(range) === values.length;
    sweep[name] = isRange ? range! : values;
  }
  return sweep;
}

/** The names before a colon: `lr:` or `(a, b):`. */
function labelAt(all: Token[], at: number): { names: string[]; end: number } | null {
  if (all[at]?.kind === 'word' && all[at + 1]?.kind === ':') {
    return NAME.test(all[at].text) ? { names: [all[at].text], end: at + 2 } : null;
  }
  if (all[at]?.kind !== '(') return null;
  const close = all.findIndex((token, place) => place > at && token.kind === ')');
  if (close < 0 || all[close + 1]?.kind !== ':') return null;
  const names = all.slice(at + 1, close).filter(({ kind }) => kind === 'word').map(({ text }) => text);
  return names.every((name) => NAME.test(name)) ? { names, end: close + 2 } : null;
}

function valueAt(all: Token[], at: number, names: string[]): { values: Value[]; end: number; range: string | null } {
  const token = all[at]!;
  if (token.kind === '(') {
    const close = all.findIndex((other, place) => place > at && other.kind === ')');
    if (close < 0) throw new WrongSweep('a bracket is not closed');
    const values = listed(all.slice(at + 1, close));
    const shown = `(${values.join(', ')})`;
    if (values.length !== names.length) {
      throw new WrongSweep(`\`${names.join(', ')}\` takes ${names.length} at a time, but ${shown} has ${values.length}`);
    }
    return { values: [names.length > 1 ? values : values[0]!], end: close + 1, range: null };
  }
  if (token.kind !== 'word' && token.kind !== 'quoted') throw new WrongSweep(`\`${token.text}\` is not expected here`);
  if (names.length > 1) throw new WrongSweep(`\`(${names.join(', ')})\` takes brackets: \`(1, 2), (3, 4)\``);
  let { text } = token;
  let end = at + 1;
  // Words with blanks between them are one value.
  while (token.kind === 'word' && all[end]?.kind === 'word' && all[end + 1]?.kind !== ':') text += ` ${all[end++]!.text}`;
  if (token.kind === 'word' && RANGE.test(text)) return { values: spread(text), end, range: text };
  return { values: [text], end, range: null };
}

function listed(all: Token[]): string[] {
  const parts: string[][] = [[]];
  for (const { kind, text } of all) {
    if (kind === ',') parts.push([]);
    else if (kind !== 'line') parts.at(-1)!.push(text);
  }
  return parts.filter((part) => part.length > 0).map((part) => part.join(' '));
}

/** `08-10` is 08, 09, 10. */
function spread(range: string): string[] {
  const [, first = ''] = RANGE.exec(range) ?? [];
  if (countOf(range) < 1 || countOf(range) > MOST_IN_RANGE) throw new WrongSweep(`\`${range}\` is no range of values`);
  const width = first.startsWith('0') ? first.length : 0;
  return Array.from({ length: countOf(range) }, (_, at) => String(Number(first) + at).padStart(width, '0'));
}

function countOf(range: string): number {
  const [, first = '0', last = '0'] = RANGE.exec(range) ?? [];
  return Number(last) - Number(first) + 1;
}

/** The sweep of a job file in the words that `parseSweep` reads. */
export function sweepText(document: JobDocument): string {
  const lines = document.names(['sweep']).map((name) => {
    const node = document.node(['sweep', name]);
    if (!isSeq(node)) return `${name}: ${document.read(['sweep', name])}`;
    const values = node.items.map((item, at) =>
      isSeq(item)
        ? `(${document.readList(['sweep', name, at]).map(shown).join(', ')})`
        : shown(document.read(['sweep', name, at])),
    );
    return `${name}: ${values.join(', ')}`;
  });
  return lines.join('\n');
}

function shown(value: string): string {
  const isPlain = /^[^\s,:()'"]+$/.test(value) && !RANGE.test(value);
  if (isPlain) return value;
  return value.includes('"') ? `'${value}'` : `"${value}"`;
}

export function isSameSweep(one: SweepValues, other: SweepValues): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

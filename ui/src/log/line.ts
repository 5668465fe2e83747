import { visiblePieces } from '../words/escapes';
import { parseAnsi, type Look } from './ansi';

/** A piece of a line as it is shown. */
export type LinePiece = { text: string; look: Look; isEscape: boolean; isMatch: boolean };
export type ShownLine = { time: string; pieces: LinePiece[]; hidden: number };

/** More than this of one line is not drawn; the download has it all. */
export const MOST_SHOWN = 20_000;

const TIME =
  /^\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?[ \t]*/;

/**
 * What a terminal would show of a line that was written over: its last state. A carriage return at
 * the end belongs to the line's end.
 */
export function lastState(line: string): string {
  const text = line.replace(/\r+$/, '');
  return text.slice(text.lastIndexOf('\r') + 1);
}

export type Finder = (text: string) => [begin: number, end: number][];

/** Finds what a search marks. The page's own expressions differ a little from the program's. */
export function finderOf(pattern: string, isRegex: boolean, isCase: boolean): Finder | undefined {
  if (!pattern) return undefined;
  try {
    const source = isRegex ? pattern : pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const expression = new RegExp(source, isCase ? 'gu' : 'giu');
    return (text) =>
      [...text.matchAll(expression)]
        .filter(([found]) => found !== '')
        .map((found) => [found.index, found.index + found[0].length]);
  } catch {
    return undefined;
  }
}

export function shownLine(raw: string, find?: Finder): ShownLine {
  const state = lastState(raw);
  const hidden = Math.max(0, state.length - MOST_SHOWN);
  const styled = parseAnsi(hidden > 0 ? state.slice(0, MOST_SHOWN) : state);
  const time = TIME.exec(styled[0]?.text ?? '')?.[0] ?? '';
  const text = styled.map((piece) => piece.text).join('');
  const matches = find?.(text) ?? [];
  const pieces: LinePiece[] = [];
  let at = 0;
  for (const { text: part, look } of styled) {
    const skipped = at === 0 ? time.length : 0;
    for (const cut of cutAt(part, at, skipped, matches)) {
      for (const { text: visible, isEscape } of visiblePieces(cut.text)) {
        pieces.push({ text: visible, look, isEscape, isMatch: cut.isMatch });
      }
    }
    at += part.length;
  }
  return { time, pieces, hidden };
}

/** Cuts a part of a line where matches begin and end. */
function cutAt(
  part: string,
  offset: number,
  skipped: number,
  matches: [number, number][],
): { text: string; isMatch: boolean }[] {
  const cuts: { text: string; isMatch: boolean }[] = [];
  let at = skipped;
  const add = (end: number, isMatch: boolean) => {
    if (end > at) cuts.push({ text: part.slice(at, end), isMatch });
    at = Math.max(at, end);
  };
  for (const [begin, end] of matches) {
    if (end <= offset + at || begin >= offset + part.length) continue;
    add(begin - offset, false);
    add(Math.min(part.length, end - offset), true);
  }
  add(part.length, false);
  return cuts;
}

const CONTEXT = 2;
const MOST_LINES = 3000;

type Line = { sign: ' ' | '+' | '-'; text: string };

/** The differences of two texts as a unified diff, empty where there is none. */
export function unifiedDiff(before: string, after: string, name: string): string {
  const lines = compared(linesOf(before), linesOf(after));
  const hunks: string[] = [];
  let old = 1;
  let fresh = 1;
  let at = 0;
  while (at < lines.length) {
    const next = lines.findIndex((line, place) => place >= at && line.sign !== ' ');
    if (next < 0) break;
    const from = Math.max(at, next - CONTEXT);
    let to = next;
    for (let quiet = 0; to < lines.length && quiet <= 2 * CONTEXT; to++) {
      quiet = lines[to]!.sign === ' ' ? quiet + 1 : 0;
    }
    while (to - 1 > next && lines[to - 1]!.sign === ' ' && trailing(lines, to) > CONTEXT) to--;
    old += count(lines, at, from, '-');
    fresh += count(lines, at, from, '+');
    const head = `@@ -${old},${count(lines, from, to, '-')} +${fresh},${count(lines, from, to, '+')} @@`;
    hunks.push(head, ...lines.slice(from, to).map(({ sign, text }) => sign + text));
    old += count(lines, from, to, '-');
    fresh += count(lines, from, to, '+');
    at = to;
  }
  return hunks.length === 0 ? '' : [`--- a/${name}`, `+++ b/${name}`, ...hunks, ''].join('\n');
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n').slice(0, MOST_LINES);
}

function trailing(lines: Line[], to: number): number {
  let quiet = 0;
  while (lines[to - 1 - quiet]?.sign === ' ') quiet++;
  return quiet;
}

function count(lines: Line[], from: number, to: number, sign: '+' | '-'): number {
  return lines.slice(from, to).filter((line) => line.sign === ' ' || line.sign === sign).length;
}

/** The longest common lines stay; what is between them goes and comes. */
function compared(before: string[], after: string[]): Line[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end++;
  const same = (texts: string[]): Line[] => texts.map((text) => ({ sign: ' ', text }));
  const middle = between(before.slice(start, before.length - end), after.slice(start, after.length - end));
  return [...same(before.slice(0, start)), ...middle, ...same(before.slice(before.length - end))];
}

function between(before: string[], after: string[]): Line[] {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let one = before.length - 1; one >= 0; one--) {
    for (let other = after.length - 1; other >= 0; other--) {
      lengths[one]![other] =
        before[one] === after[other]
          ? lengths[one + 1]![other + 1]! + 1
          : Math.max(lengths[one + 1]![other]!, lengths[one]![other + 1]!);
    }
  }
  const lines: Line[] = [];
  let one = 0;
  let other = 0;
  while (one < before.length || other < after.length) {
    if (one < before.length && other < after.length && before[one] === after[other]) {
      lines.push({ sign: ' ', text: before[one++]! });
      other++;
    } else if (one < before.length && (other >= after.length || lengths[one + 1]![other]! >= lengths[one]![other + 1]!)) {
      lines.push({ sign: '-', text: before[one++]! });
    } else lines.push({ sign: '+', text: after[other++]! });
  }
  return lines;
}

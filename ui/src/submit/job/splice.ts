import { isMap, isNode } from 'yaml';
import { JobDocument, textOf } from './document';

type Segment = { name: string; next: string | undefined; text: string };

/**
 * The changed document as text. Keys at the top that were not touched keep every character; only
 * the touched one is written anew.
 */
export function splice(document: JobDocument, touched: string): string {
  const contents = document.tree.contents;
  if (isMap(contents) && contents.items.length === 0) {
    contents.flow = true;
    const text = document.tree.toString(writing(document.text)).replace(/^\{\}\n?/m, '');
    return text.trim() === '' ? '' : text;
  }
  const text = document.tree.toString(writing(document.text));
  const before = segments(new JobDocument(document.text));
  const after = segments(new JobDocument(text));
  if (!before || !after) return text;
  const old = new Map(before.segments.map((segment) => [segment.name, segment]));
  const isHeadKept = before.segments[0]?.name === after.segments[0]?.name;
  const parts = after.segments.map((segment) => {
    const kept = old.get(segment.name);
    // What stands between two keys belongs to the one before it in the text.
    const isKept = kept && segment.name !== touched && kept.next === segment.next;
    if (!isKept) return segment.text;
    return kept.text.endsWith('\n') ? kept.text : `${kept.text}\n`;
  });
  return (isHeadKept ? before.head : after.head) + parts.join('');
}

function segments(document: JobDocument): { head: string; segments: Segment[] } | null {
  const contents = document.tree.contents;
  if (!isMap(contents) || contents.flow) return null;
  const starts = contents.items.map(({ key }) => ({
    name: textOf(key),
    start: isNode(key) ? (key.range?.[0] ?? -1) : -1,
  }));
  if (starts.some(({ start }) => start < 0)) return null;
  const { text } = document;
  return {
    head: text.slice(0, starts[0]?.start ?? 0),
    segments: starts.map(({ name, start }, at) => ({
      name,
      next: starts[at + 1]?.name,
      text: text.slice(start, starts[at + 1]?.start),
    })),
  };
}

/** Lists are indented as the file does it already. */
function writing(text: string) {
  const isFlat = /^( *)[^\s#-].*:[ \t]*\n\1- /m.test(text);
  return { lineWidth: 0, flowCollectionPadding: false, indentSeq: !isFlat } as const;
}

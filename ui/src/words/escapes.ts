/**
 * Characters that change how other characters are shown, or that show nothing: controls, marks of
 * text direction, zero-width characters, fillers, tags. A text of somebody else could hide or
 * reorder words with them, so they are shown as escapes.
 */
const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** Most texts are of these alone. */
const PLAIN = /^[ -~\t]*$/;

/** `\u{202e}` for a character that would not be seen. */
export function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** The text with its hidden characters as escapes. Tabs and line ends stay. */
export function visibleText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(HIDDEN, escapeCharacter);
}

export type Piece = { text: string; isEscape: boolean };

/** The same, in pieces, so that escapes can look different from a text that looks like one. */
export function visiblePieces(text: string): Piece[] {
  if (PLAIN.test(text)) return text ? [{ text, isEscape: false }] : [];
  const pieces: Piece[] = [];
  let end = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > end) pieces.push({ text: text.slice(end, found.index), isEscape: false });
    pieces.push({ text: escapeCharacter(found[0]), isEscape: true });
    end = found.index + found[0].length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), isEscape: false });
  return pieces;
}

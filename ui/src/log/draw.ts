import { countText } from '../words/numbers';
import { isDark, type Look } from './ansi';
import type { LinePiece, ShownLine } from './line';

// A log in motion changes some hundred pieces of text in a frame. They are put into the page by
// hand because that is several times faster than a component for each. Whatever a line holds, it
// only ever becomes the text of a text node.

export function drawLine(
  target: HTMLElement,
  line: ShownLine | undefined,
  areTimesShown: boolean,
  isShortened: boolean,
): void {
  if (!line) {
    target.replaceChildren(spanOf('coming', ''));
    return;
  }
  const children: (string | HTMLElement)[] = line.pieces.map(nodeOf);
  if (line.time && areTimesShown) children.unshift(spanOf('time', line.time));
  if (isShortened) children.push(spanOf('rest', '… a very long line: the download has all of it'));
  else if (line.hidden > 0) children.push(spanOf('rest', `… ${countText(line.hidden)} more characters`));
  target.replaceChildren(...children);
}

function spanOf(names: string, text: string): HTMLElement {
  const span = document.createElement('span');
  span.className = names;
  span.textContent = text;
  return span;
}

function nodeOf({ text, look, isEscape, isMatch }: LinePiece): string | HTMLElement {
  const names = namesOf(look);
  if (isEscape) names.push('escape');
  if (names.length === 0 && !isMatch) return text;
  const node = isMatch ? document.createElement('mark') : document.createElement('span');
  node.className = names.join(' ');
  node.textContent = text;
  if (typeof look.color === 'string') node.style.setProperty('--own', look.color);
  if (typeof look.background === 'string' && !isMatch) node.style.backgroundColor = look.background;
  return node;
}

/** The names that `log.css` knows. On a background of the job's own the text is black or white. */
function namesOf(look: Look): string[] {
  const names: string[] = [];
  if (typeof look.background === 'string') names.push(isDark(look.background) ? 'on-dark' : 'on-light');
  else if (typeof look.background === 'number') names.push(`b${look.background}`);
  else if (typeof look.color === 'number') names.push(`c${look.color}`);
  else if (look.color !== undefined) names.push('own');
  if (look.isBold) names.push('bold');
  if (look.isDim) names.push('dim');
  if (look.isItalic) names.push('italic');
  if (look.isUnderlined) names.push('under');
  if (look.isStruck) names.push('struck');
  if (look.isInverse) names.push('inverse');
  return names;
}

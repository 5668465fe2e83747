/** How a piece of a line looks. Colours 0 to 15 are the page's own; others are CSS colours. */
export type Look = {
  color?: number | string;
  background?: number | string;
  isBold?: boolean;
  isDim?: boolean;
  isItalic?: boolean;
  isUnderlined?: boolean;
  isInverse?: boolean;
  isStruck?: boolean;
};

export type Styled = { text: string; look: Look };

/**
 * Escape sequences: with a final letter (CSI), with a text (OSC, DCS, …) and short ones. Only SGR,
 * which sets colours, is obeyed; all others are dropped. A sequence that does not end is no
 * sequence: its escape character is shown.
 */
const SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)([0-?]*)([ -/]*[@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-OQ-WYZ\\`-~]/g;

/** The text of a line without its escape sequences, in pieces of one look each. */
export function parseAnsi(line: string): Styled[] {
  if (!line.includes('\u001b') && !line.includes('\u009b')) return line ? [{ text: line, look: {} }] : [];
  const pieces: Styled[] = [];
  let look: Look = {};
  let end = 0;
  const add = (text: string) => {
    if (text) pieces.push({ text, look });
  };
  for (const found of line.matchAll(SEQUENCE)) {
    add(line.slice(end, found.index));
    end = found.index + found[0].length;
    if (found[2] === 'm') look = lookAfter(look, found[1] ?? '');
  }
  add(line.slice(end));
  return pieces;
}

const ATTRIBUTES: Record<number, keyof Look> = {
  1: 'isBold',
  2: 'isDim',
  3: 'isItalic',
  4: 'isUnderlined',
  7: 'isInverse',
  9: 'isStruck',
};
const ENDS: Record<number, (keyof Look)[]> = {
  22: ['isBold', 'isDim'],
  23: ['isItalic'],
  24: ['isUnderlined'],
  27: ['isInverse'],
  29: ['isStruck'],
  39: ['color'],
  49: ['background'],
};

function lookAfter(before: Look, parameters: string): Look {
  // Colons are the standard's own separator within a colour; semicolons are what most write.
  const codes = parameters.split(/[;:]/).map((code) => (code === '' ? 0 : Number(code)));
  let look = { ...before };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    const attribute = ATTRIBUTES[code];
    if (code === 0) look = {};
    else if (attribute) look = { ...look, [attribute]: true };
    else if (ENDS[code]) for (const key of ENDS[code]) delete look[key];
    else if (code >= 30 && code <= 37) look.color = code - 30;
    else if (code >= 40 && code <= 47) look.background = code - 40;
    else if (code >= 90 && code <= 97) look.color = code - 82;
    else if (code >= 100 && code <= 107) look.background = code - 92;
    else if (code === 38 || code === 48) {
      const colour = extendedColour(codes, at + 1);
      if (colour.value !== undefined) look[code === 38 ? 'color' : 'background'] = colour.value;
      at += colour.used;
    }
  }
  return look;
}

function extendedColour(
  codes: number[],
  at: number,
): { value: number | string | undefined; used: number } {
  if (codes[at] === 5) return { value: indexedColour(codes[at + 1] ?? 0), used: 2 };
  if (codes[at] !== 2) return { value: undefined, used: 0 };
  const [red = 0, green = 0, blue = 0] = codes.slice(at + 1, at + 4).map(byte);
  return { value: `rgb(${red} ${green} ${blue})`, used: 4 };
}

function indexedColour(index: number): number | string | undefined {
  if (!Number.isInteger(index) || index < 0 || index > 255) return undefined;
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  const cube = index - 16;
  const levels = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level);
  return `rgb(${levels.join(' ')})`;
}

function byte(value: number): number {
  return Number.isFinite(value) ? Math.max(0, Math.min(255, value)) : 0;
}

/** Whether light text is readable on a colour `rgb(1 2 3)`. */
export function isDark(colour: string): boolean {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map(Number);
  return red * 0.299 + green * 0.587 + blue * 0.114 < 140;
}

/**
 * A place in a list of lines: a line, and how many pixels of it are above the view. Pixels alone
 * would not do, because an element of a browser cannot be as high as ten million lines, and because
 * the height of a wrapped line is known only once it is shown.
 */
export type Place = { line: number; offset: number };
export type Heights = (line: number) => number;

/** Firefox ends at 17.8 million pixels, Chromium at 33.5 million; below this all are exact. */
export const MAX_SPACE = 8_000_000;

export const BEGIN: Place = { line: 0, offset: 0 };

/** The place so many pixels further down, or up. */
export function move(place: Place, pixels: number, total: number, heights: Heights): Place {
  let { line } = place;
  let offset = place.offset + pixels;
  while (offset < 0 && line > 0) {
    line -= 1;
    offset += heights(line);
  }
  while (line < total - 1 && offset >= heights(line)) {
    offset -= heights(line);
    line += 1;
  }
  return offset < 0 || total === 0 ? BEGIN : { line, offset };
}

/** The place at which the end of the list is at the lower edge of the view. */
export function lastPlace(total: number, view: number, heights: Heights): Place {
  let line = total;
  let left = view;
  while (line > 0 && left > 0) {
    line -= 1;
    left -= heights(line);
  }
  return left > 0 ? BEGIN : { line, offset: Math.abs(left) };
}

export function isBehind(place: Place, other: Place): boolean {
  return place.line > other.line || (place.line === other.line && place.offset > other.offset);
}

function fraction(place: Place, heights: Heights): number {
  return place.line + place.offset / Math.max(1, heights(place.line));
}

/** Where the scroll bar stands for a place, if it can go from 0 to `range`. */
export function barOf(place: Place, last: Place, range: number, heights: Heights): number {
  const end = fraction(last, heights);
  return end <= 0 ? 0 : Math.min(range, (fraction(place, heights) / end) * range);
}

/** The place that a position of the scroll bar stands for. */
export function placeOf(bar: number, last: Place, range: number, heights: Heights): Place {
  if (range <= 0 || bar <= 0) return BEGIN;
  if (bar >= range - 0.5) return last;
  const lines = (bar / range) * fraction(last, heights);
  const line = Math.floor(lines);
  return { line, offset: (lines - line) * heights(line) };
}

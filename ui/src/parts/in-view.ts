/** How much of the neighbour is seen beside the current link, so that it is seen that there is more. */
const EDGE = 28;

/** Scrolls a line of links sideways, and nothing else, until the current one is seen. */
export function showCurrent(line: HTMLElement): void {
  const current = line.querySelector('[aria-current]');
  if (!current) return;
  const outer = line.getBoundingClientRect();
  const inner = current.getBoundingClientRect();
  if (inner.left < outer.left + EDGE) line.scrollLeft += inner.left - outer.left - EDGE;
  else if (inner.right > outer.right - EDGE) line.scrollLeft += inner.right - outer.right + EDGE;
}

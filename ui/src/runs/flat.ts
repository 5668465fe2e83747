/** A sweep that is unfolded: the place of its row in the folded list, and the number of its runs. */
export type Unfolded = { at: number; count: number };
export type Located = { at: number; child?: number };

/** The number of rows, those of unfolded sweeps included. */
export function flatTotal(total: number, unfolded: Unfolded[]): number {
  return unfolded.reduce((sum, { count }) => sum + count, total);
}

/** Which row of the folded list, or which run of an unfolded sweep, a row is. `unfolded` is sorted. */
export function locate(index: number, unfolded: Unfolded[]): Located {
  let before = 0;
  for (const { at, count } of unfolded) {
    const begin = at + before + 1;
    if (index < begin) break;
    if (index < begin + count) return { at, child: index - begin };
    before += count;
  }
  return { at: index - before };
}

/** The row of something in the folded list. */
export function flatIndex(at: number, unfolded: Unfolded[]): number {
  return unfolded.reduce((sum, other) => (other.at < at ? sum + other.count : sum), at);
}

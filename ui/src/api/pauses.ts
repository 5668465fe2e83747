const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/** How long to wait before the next try, after so many that failed in a row. */
export function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1));
}

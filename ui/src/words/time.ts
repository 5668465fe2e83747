const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `4s`, `3m 20s`, `2h 05m`, `3d 4h`: two units at most, and none that does not matter. */
export function durationText(milliseconds: number): string {
  const time = Math.max(0, milliseconds);
  if (time < MINUTE) return `${Math.floor(time / SECOND)}s`;
  if (time < HOUR) return `${Math.floor(time / MINUTE)}m ${two((time % MINUTE) / SECOND)}s`;
  if (time < DAY) return `${Math.floor(time / HOUR)}h ${two((time % HOUR) / MINUTE)}m`;
  return `${Math.floor(time / DAY)}d ${Math.floor((time % DAY) / HOUR)}h`;
}

/** `just now`, `5m`, `3h`, `12d`: one unit, for a column of ages. */
export function ageText(milliseconds: number): string {
  if (milliseconds < 10 * SECOND) return 'just now';
  if (milliseconds < MINUTE) return `${Math.floor(milliseconds / SECOND)}s`;
  if (milliseconds < HOUR) return `${Math.floor(milliseconds / MINUTE)}m`;
  if (milliseconds < 2 * DAY) return `${Math.floor(milliseconds / HOUR)}h`;
  return `${Math.floor(milliseconds / DAY)}d`;
}

/** `2026-11-15 08:27:33`, in the reader's own zone. */
export function timeText(time: string | number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function two(number: number): string {
  return String(Math.floor(number)).padStart(2, '0');
}

/** The time of something that began, and may have ended. Null if it has not begun. */
export function tookMilliseconds(
  started: string | null,
  ended: string | null,
  now: number,
): number | null {
  if (started === null) return null;
  return (ended === null ? now : Date.parse(ended)) - Date.parse(started);
}

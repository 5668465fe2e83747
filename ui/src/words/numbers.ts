const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** `512 bytes`, `3.4 MB`. */
export function sizeText(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 99.5 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`;
}

const grouped = new Intl.NumberFormat('en-US');

/** `10,000,000`. */
export function countText(count: number): string {
  return grouped.format(count);
}

/** `1 run`, `3 runs`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : several}`;
}

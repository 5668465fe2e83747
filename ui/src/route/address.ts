/** A page of this program, as it stands behind the `#` of an address. */
export type Address = { path: string[]; query: URLSearchParams };

/** `#/run/ID/logs?rank=0` → `['run', 'ID', 'logs']` and `rank=0`. */
export function parseAddress(hash: string): Address {
  const text = hash.replace(/^#?\/?/, '');
  const mark = text.indexOf('?');
  const path = (mark < 0 ? text : text.slice(0, mark)).split('/').filter(Boolean).map(decoded);
  return { path, query: new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1)) };
}

export function formatAddress(path: string[], query?: URLSearchParams): string {
  const text = query?.toString() ?? '';
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a run's page, or of one of its tabs. */
export function runAddress(id: string, tab?: string, query?: Record<string, string>): string {
  const path = tab ? ['run', id, tab] : ['run', id];
  return formatAddress(path, new URLSearchParams(query));
}

export function sweepAddress(id: string): string {
  return formatAddress(['sweep', id]);
}

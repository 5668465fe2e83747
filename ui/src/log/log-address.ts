import type { LogRef, LogSource } from '../api/types';
import { runAddress } from '../route/address';

/** What the address of a log says: `rank=0&rank=1&attempt=2&line=123`. Lines count from 1 there. */
export type LogAddress = { sources: LogSource[]; attempt: number | null; line: number | null };

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

export function parseLogAddress(query: URLSearchParams): LogAddress {
  const sources: LogSource[] = [];
  for (const [key, value] of query) {
    const number = numberOf(value);
    if (number === null) continue;
    if (key === 'rank') sources.push({ rank: number });
    else if (key === 'set_up') sources.push({ set_up: number });
  }
  return { sources, attempt: numberOf(query.get('attempt')), line: numberOf(query.get('line')) };
}

export function formatLogAddress({ sources, attempt, line }: LogAddress): URLSearchParams {
  const query = new URLSearchParams();
  for (const source of sources) {
    if ('rank' in source) query.append('rank', String(source.rank));
    else query.append('set_up', String(source.set_up));
  }
  if (attempt !== null) query.set('attempt', String(attempt));
  if (line !== null) query.set('line', String(line));
  return query;
}

export function sourceText(source: LogSource): string {
  return 'rank' in source ? `rank ${source.rank}` : `set-up of node ${source.set_up}`;
}

/** The address of one line, counted from 0 here and from 1 in the address. */
export function lineAddress({ run, attempt, source }: LogRef, line: number | null): string {
  const query = formatLogAddress({ sources: [source], attempt, line: line === null ? null : line + 1 });
  return runAddress(run, 'logs', Object.fromEntries(query));
}

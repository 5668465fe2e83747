import type { NamedSize, Transfer } from '../api/types';
import { withoutEmpty } from '../words/input';
import { counted, sizeText } from '../words/numbers';
import { durationText } from '../words/time';
import { verbPath, type Place } from './place';

export type CopyKind = 'down' | 'up' | 'across';
export type CopyChoices = { checksum: boolean; delete: boolean };
export type CopyCall = { verb: 'down' | 'up' | 'cp'; args: Record<string, unknown> };

/**
 * A path of the machine that runs Towline, as `cp` takes it. `./` keeps a colon in it from being
 * read as the end of a datastore's name.
 */
export function localPath(text: string): string {
  const path = text.trim();
  return path.startsWith('/') || path.startsWith('./') || path.startsWith('../') ? path : `./${path}`;
}

export function localPathProblem(text: string): string | null {
  const path = text.trim();
  if (path === '') return 'a path on that machine';
  if (path.startsWith('~')) return 'the whole path, please: ~ is not known here';
  return null;
}

export function storePathProblem(text: string, stores: string[]): string | null {
  const at = text.indexOf(':');
  if (at <= 0) return 'a datastore and a path, such as nas:archive';
  const store = text.slice(0, at);
  return stores.includes(store) ? null : `there is no datastore ${store}; known: ${stores.join(', ')}`;
}

const asFolder = (path: string) => (path.endsWith('/') || path.endsWith(':') ? path : `${path}/`);

/**
 * The calls that a copy consists of. Where the project has the folder under the same path, `down`
 * and `up` know the other side by themselves, and `target` is not needed.
 */
export function copyCalls(kind: CopyKind, place: Place, names: string[], target: string, choices: CopyChoices): CopyCall[] {
  const chosen = withoutEmpty(choices);
  if (kind === 'up') {
    if (place.store === null) {
      const name = target.trim().replace(/^\/+|\/+$/g, '');
      return [{ verb: 'up', args: { paths: [verbPath(place, name === '' ? undefined : name)], ...chosen } }];
    }
    return [{ verb: 'cp', args: { from: localPath(target), to: asFolder(verbPath(place)), ...chosen } }];
  }
  if (kind === 'down' && place.store === null) {
    return [{ verb: 'down', args: { paths: names.map((name) => verbPath(place, name)), ...chosen } }];
  }
  const to = asFolder(kind === 'down' ? localPath(target) : target.trim());
  return names.map((name) => ({ verb: 'cp', args: { from: verbPath(place, name), to, ...chosen } }));
}

export type CopySums = {
  files: number;
  bytes: number;
  equal: number;
  removed: number;
  failed: number;
  leftOut: number;
  send: NamedSize[];
  onlyThere: NamedSize[];
};

export function copySums(transfers: Transfer[]): CopySums {
  const sum = (pick: (transfer: Transfer) => number) => transfers.reduce((total, one) => total + pick(one), 0);
  const send = transfers.flatMap((one) => one.would_send);
  const isPlan = transfers.every((one) => one.dry_run);
  return {
    files: isPlan ? send.length : sum((one) => one.sent),
    bytes: isPlan ? send.reduce((total, { size }) => total + size, 0) : sum((one) => one.sent_bytes),
    equal: sum((one) => one.equal_by_time + one.equal_by_hash),
    removed: sum((one) => one.removed),
    failed: sum((one) => one.failed.length),
    leftOut: sum((one) => one.left_out.length),
    send,
    onlyThere: transfers.flatMap((one) => one.only_there),
  };
}

/** `12 files, 3.2 GB copied in 4s; 488 were there already`. */
export function doneText(transfers: Transfer[]): string {
  const sums = copySums(transfers);
  const millis = transfers.reduce((total, one) => total + one.millis, 0);
  return [
    `${counted(sums.files, 'file')}, ${sizeText(sums.bytes)} copied in ${durationText(millis)}`,
    ...(sums.equal > 0 ? [`${counted(sums.equal, 'file')} there already`] : []),
    ...(sums.removed > 0 ? [`${counted(sums.removed, 'file')} removed`] : []),
    ...(sums.leftOut > 0 ? [`${counted(sums.leftOut, 'name')} left out`] : []),
    ...(sums.failed > 0 ? [`${counted(sums.failed, 'file')} failed`] : []),
  ].join('; ');
}

import type { Removed } from '../api/types';
import type { Entry } from './entries';

/**
 * What has to be typed before something is removed: the name of a folder, or the number of files
 * where a folder is one of several names. Single files need nothing.
 */
export function wordToType(entries: Entry[], plan: Pick<Removed, 'files'> | null): string | null {
  const folder = entries.find(({ isFolder }) => isFolder);
  if (!folder) return null;
  return entries.length === 1 ? folder.name : String(plan?.files ?? '');
}

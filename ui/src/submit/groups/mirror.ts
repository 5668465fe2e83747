import type { Mirror } from '../job-form.svelte';

/** Patterns may stand with commas or semicolons between. */
export function mirrorArguments({ place, ignore }: Mirror, ofCode: string[]): { place?: string; ignore?: string[] } {
  const patterns = [...ofCode, ...ignore.split(/[,;\n]/).map((pattern) => pattern.trim())].filter(Boolean);
  return {
    ...(place.trim() ? { place: place.trim() } : {}),
    ...(patterns.length > 0 ? { ignore: [...new Set(patterns)] } : {}),
  };
}

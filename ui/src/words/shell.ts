const PLAIN_WORD = /^[\w@%+=:,./-]+$/;

/** A word as a shell takes it for one. */
export function quoted(word: string): string {
  return PLAIN_WORD.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A path that is not taken for an option either. */
export function quotedPath(path: string): string {
  return quoted(path.startsWith('-') ? `./${path}` : path);
}

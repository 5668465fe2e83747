const SPAN = /^(\d+[dD])?(\d+[hH])?(\d+[mM])?(\d+[sS])?$|^\d+$|^(\d+-)?\d+:\d+:\d+$/;

/** What is wrong with a span of time such as `14d` or `2h30m`, if something is. */
export function spanProblem(text: string): string | null {
  const trimmed = text.trim();
  if (trimmed === '' || (SPAN.test(trimmed) && /[1-9]/.test(trimmed))) return null;
  return 'a time such as 90s, 30m, 8h or 2d';
}

/** What is wrong with a whole number of at least `least`. Nothing at all is no number, and right. */
export function countProblem(text: string, least = 0): string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  if (!/^\d+$/.test(trimmed) || Number(trimmed) < least) return `a whole number, ${least} or more`;
  return null;
}

/** The problems of a form: only fields that have one. */
export function problemsOf<K extends string>(all: Record<K, string | null>): Partial<Record<K, string>> {
  return Object.fromEntries(Object.entries(all).filter(([, problem]) => problem !== null)) as Partial<Record<K, string>>;
}

/** Arguments without those that are empty: the verb then takes its default. */
export function withoutEmpty<T extends Record<string, unknown>>(args: T): Partial<T> {
  const given = Object.entries(args).filter(
    ([, value]) => value !== '' && value !== null && value !== undefined && value !== false,
  );
  return Object.fromEntries(given) as Partial<T>;
}

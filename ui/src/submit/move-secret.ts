import { written } from './job/change';
import { JobDocument, type Path } from './job/document';
import { pathOfLine } from './job/places';
import type { FoundSecret } from './job/secrets';

const SECRETS: Path = ['environment', 'secrets'];

/** The text with the variable of a secret in its place, and the name among the secrets. */
export function withSecretMoved(text: string, secret: FoundSecret): string {
  const { from, to, name, line } = secret;
  const path = pathOfLine(new JobDocument(text), line);
  const [group, part] = path;
  // A variable of the environment is one of the secrets instead: it keeps its name.
  const variable = group === 'environment' && part === 'env' ? (path[2] ?? ofLine(text, line)) : undefined;
  if (variable !== undefined && new JobDocument(text).has(['environment', 'env', variable])) {
    return named(written(text, ['environment', 'env', variable], undefined), String(variable));
  }
  return named(withoutAssignment(text, secret) ?? `${text.slice(0, from)}\${${name}}${text.slice(to)}`, name);
}

function named(text: string, name: string): string {
  const names = new JobDocument(text).readList(SECRETS);
  return names.includes(name) ? text : written(text, SECRETS, [...names, name]);
}

/** `env: {A: …}` on one line: the name beside the value. */
function ofLine(text: string, line: number): string | undefined {
  return /([A-Za-z_]\w*):\s*\S+\s*\}?\s*$/.exec(text.split('\n')[line - 1] ?? '')?.[1];
}

/** `export PAT=…` alone on its line goes as a whole: the variable is there without it. */
function withoutAssignment(text: string, { from, to, name }: FoundSecret): string | null {
  const start = text.lastIndexOf('\n', from) + 1;
  const end = text.indexOf('\n', to);
  const line = text.slice(start, end < 0 ? text.length : end);
  const isAssignment = new RegExp(`^\\s*(?:export\\s+)?${name}=["']?[^"'\\s]*["']?\\s*$`).test(line);
  return isAssignment ? text.slice(0, start) + text.slice(end < 0 ? text.length : end + 1) : null;
}

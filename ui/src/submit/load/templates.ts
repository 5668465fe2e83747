import { store, stored } from '../../shell/stored';
import { withoutSecrets } from '../job/secrets';

/** A job file that was saved under a name in this browser. */
export type Template = { name: string; text: string; saved: string };

const PLACE = 'submit-templates';

export function templates(): Template[] {
  const all = stored<Template[]>(PLACE, []);
  return Array.isArray(all) ? all.filter(({ name, text }) => typeof name === 'string' && typeof text === 'string') : [];
}

export function saveTemplate(name: string, text: string): void {
  const others = templates().filter((template) => template.name !== name);
  const saved = new Date().toISOString();
  store(PLACE, [{ name, text: withoutSecrets(text), saved }, ...others]);
}

export function deleteTemplate(name: string): void {
  store(PLACE, templates().filter((template) => template.name !== name));
}

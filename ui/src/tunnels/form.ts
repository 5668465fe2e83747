import type { Failure, Tunnel } from '../api/types';
import { problemsOf, withoutEmpty } from '../words/input';

export type TunnelForm = {
  /** By its hosts, or by the number of a machine that the table `bastions` knows. */
  by: 'hosts' | 'number';
  name: string;
  to: string;
  via: string;
  port: string;
  user: string;
  probe: string;
  number: string;
};

export type TunnelField = Exclude<keyof TunnelForm, 'by'>;

export const EMPTY_FORM: TunnelForm = { by: 'hosts', name: '', to: '', via: '', port: '', user: '', probe: '', number: '' };

const MOST_CHARACTERS = 40;

function nameProblem(name: string, known: Tunnel[]): string | null {
  if (name === '') return 'a name, such as box';
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) || name.length > MOST_CHARACTERS) {
    return `letters, digits, “.”, “_” and “-”, a letter or digit first, at most ${MOST_CHARACTERS}`;
  }
  if (name === 'node') return 'this name is taken: tow-node is the newest allocation';
  return known.some((one) => one.name === name) ? `there is a tunnel ${name} already` : null;
}

function portProblem(port: string, known: Tunnel[]): string | null {
  if (port === '') return null;
  const number = Number(port);
  if (!/^\d+$/.test(port) || number < 1 || number > 65_535) return 'a number from 1 to 65535';
  const taken = known.find((one) => one.port === number);
  return taken ? `that is the port of ${taken.name}` : null;
}

/** What can be seen to be wrong before anything is sent. The program checks the rest. */
export function formProblems(form: TunnelForm, known: Tunnel[]): Partial<Record<TunnelField, string>> {
  const isNumber = form.by === 'number';
  const name = form.name.trim();
  return problemsOf<TunnelField>({
    name: isNumber && name === '' ? null : nameProblem(name, known),
    to: isNumber ? null : /\s/.test(form.to.trim()) || form.to.trim() === '' ? 'a host, or a host and a port: box:8888' : null,
    via: null,
    port: portProblem(form.port.trim(), known),
    user: /[\s@]/.test(form.user.trim()) ? 'a user’s name alone' : null,
    probe: null,
    number: isNumber && !/^\d+$/.test(form.number.trim()) ? 'digits, such as 1234' : null,
  });
}

export function addArgs(form: TunnelForm, open: boolean) {
  const route =
    form.by === 'number'
      ? { sandbox: form.number.trim() }
      : { to: form.to.trim(), via: form.via.split(/[\s,]+/).filter(Boolean).join(',') };
  return withoutEmpty({
    name: form.name.trim(),
    ...route,
    port: form.port.trim() === '' ? '' : Number(form.port),
    user: form.user.trim(),
    probe: form.probe,
    open,
  });
}

const WORDS: [TunnelField, RegExp][] = [
  ['number', /sandbox|bastion/i],
  ['port', /\bport\b/i],
  ['name', /\bname\b|exists|already|called/i],
  ['user', /\buser\b/i],
  ['via', /\bhop|\bvia\b/i],
  ['to', /HOST|\bhost\b|target/i],
];

/** The field that the program complains of: the one it names, or whose value it quotes. */
export function fieldOf({ key, message }: Failure, form: TunnelForm): TunnelField | null {
  const fields: TunnelField[] =
    form.by === 'number' ? ['number', 'name', 'port', 'user'] : ['name', 'to', 'via', 'port', 'user', 'probe'];
  const named = fields.find((field) => key?.split('.').at(-1) === field);
  if (named) return named;
  const quoted = fields.find((field) => form[field].trim() !== '' && message.includes(`\`${form[field].trim()}\``));
  if (quoted) return quoted;
  return WORDS.find(([field, words]) => fields.includes(field) && words.test(message))?.[0] ?? null;
}

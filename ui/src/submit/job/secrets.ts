/** A token or a key that stands where everybody can read it. */
export type FoundSecret = {
  /** From 1. */
  line: number;
  from: number;
  to: number;
  /** A name for the variable that holds it instead. */
  name: string;
  /** Where it begins, as it may be shown: never the whole. */
  shown: string;
};

const BEGINNINGS: [RegExp, string][] = [
  [/\bgithub_pat_/y, 'GITHUB_PAT'],
  [/\bgh[pousr]_/y, 'GITHUB_PAT'],
  [/\bglpat-/y, 'GITLAB_TOKEN'],
  [/\bhf_/y, 'HF_TOKEN'],
  [/\bsk-/y, 'API_KEY'],
  [/\bxox[bp]-/y, 'SLACK_TOKEN'],
  [/\bAKIA/y, 'AWS_ACCESS_KEY_ID'],
  [/\beyJ/y, 'ACCESS_TOKEN'],
  [/\bAccountKey=/y, 'ACCOUNT_KEY'],
  [/\bsig=/y, 'SAS_SIGNATURE'],
];
const TOKEN = /[\w%+/=.-]{12,}/y;
const ASSIGNED =
  /\b([A-Za-z_]\w*)[ \t]*[=:][ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'#;&|,}\])]+))/g;
const TELLING_PART =
  /TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|ACCOUNT_KEY|PRIVATE_KEY|CREDENTIAL|CONNECTION_STRING|SAS_URL/;
const TELLING_WORD = /(?:^|_)(?:PAT|SAS|AUTH|PASS|KEY)(?:_|$)/;
const HARMLESS = /(?:_FILE|_PATH|_NAME|_COLUMN|_ID|TOKENS|TOKENIZER|TOKENIZERS_PARALLELISM)$|^(?:SSH_AUTH_SOCK|GPG_KEY)$/;

/** The secrets of a text, by their shape or by the name beside them, from the first to the last. */
export function findSecrets(text: string): FoundSecret[] {
  const found = [...byShape(text)];
  for (const secret of byName(text)) {
    if (!found.some(({ from, to }) => from < secret.to && secret.from < to)) found.push(secret);
  }
  return found.sort((one, other) => one.from - other.from);
}

function* byShape(text: string): Generator<FoundSecret> {
  for (let at = 0; at < text.length; at++) {
    for (const [beginning, usual] of BEGINNINGS) {
      beginning.lastIndex = at;
      const begun = beginning.exec(text);
      if (!begun) continue;
      // Behind a label such as `sig=` the secret itself begins.
      const from = begun[0].endsWith('=') ? at + begun[0].length : at;
      TOKEN.lastIndex = from;
      const token = TOKEN.exec(text)?.[0];
      if (!token || !/\d/.test(token)) continue;
      const before = /([A-Za-z_]\w*)\s*[=:]\s*["']?$/.exec(text.slice(Math.max(0, at - 60), at))?.[1];
      const name = before && /^[A-Z_][A-Z0-9_]*$/.test(before) ? before : usual;
      yield secret(text, from, from + token.length, name);
      at = from + token.length;
      break;
    }
  }
}

function* byName(text: string): Generator<FoundSecret> {
  for (const match of text.matchAll(ASSIGNED)) {
    const [whole, name = '', double, single, bare] = match;
    const value = double ?? single ?? bare ?? '';
    if (!isTelling(name) || !isTellingValue(value)) continue;
    const from = match.index + whole.lastIndexOf(value);
    yield secret(text, from, from + value.length, name.toUpperCase());
  }
}

export function isTelling(name: string): boolean {
  const upper = name.toUpperCase();
  return (TELLING_PART.test(upper) || TELLING_WORD.test(upper)) && !HARMLESS.test(upper);
}

function isTellingValue(value: string): boolean {
  if (value.length <= 3 || /^[$`<~./*[{|>&]/.test(value) || value.includes('${{')) return false;
  return !/^(?:true|false|none|null|[\d.]{1,9})$/i.test(value);
}

function secret(text: string, from: number, to: number, name: string): FoundSecret {
  const line = text.slice(0, from).split('\n').length;
  return { line, from, to, name, shown: `${text.slice(from, Math.min(to - 4, from + 4))}…` };
}

/** The text with nothing in it that has to stay secret. */
export function withoutSecrets(text: string): string {
  let clean = text;
  for (const { from, to } of findSecrets(text).reverse()) clean = `${clean.slice(0, from)}***${clean.slice(to)}`;
  return clean;
}

/**
 * A value as YAML to read. What a reader of YAML could take for something else is quoted.
 */
export function yamlText(value: unknown): string {
  return block(value, '').replace(/^\n/, '').concat('\n');
}

const PLAIN = /^[A-Za-z_./][\w ./@+-]*$/;
const TAKEN_FOR_ANOTHER = /^(?:true|false|yes|no|on|off|null|y|n|~)$/i;

function block(value: unknown, indent: string): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return ' []';
    if (value.every(isScalar)) return ` [${value.map((item) => scalar(item)).join(', ')}]`;
    return value.map((item) => `\n${indent}-${nested(item, `${indent}  `)}`).join('');
  }
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined && item !== null);
    if (entries.length === 0) return ' {}';
    return entries
      .map(([key, item]) => `\n${indent}${scalar(key)}:${block(item, `${indent}  `)}`)
      .join('');
  }
  if (typeof value === 'string' && value.includes('\n')) return lines(value, indent || '  ');
  return ` ${scalar(value)}`;
}

/** A list of a list: its first key stands behind the dash. */
function nested(item: unknown, indent: string): string {
  const text = block(item, indent);
  return text.startsWith(`\n${indent}`) ? ` ${text.slice(indent.length + 1)}` : text;
}

function lines(text: string, indent: string): string {
  const mark = text.endsWith('\n') ? '|' : '|-';
  const body = text.replace(/\n$/, '').split('\n');
  return ` ${mark}${body.map((line) => `\n${line ? indent + line : ''}`).join('')}`;
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') return String(value);
  const isPlain = PLAIN.test(value) && !TAKEN_FOR_ANOTHER.test(value) && !value.endsWith(' ');
  return isPlain ? value : JSON.stringify(value);
}

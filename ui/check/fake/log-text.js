// Two kinds of logs: one that is text and can grow, and one of any length that is made up as it is
// read, each line as long as every other.

const LINE_BYTES = 96;
const CHUNK_LINES = 50_000;

/** A log of so many lines, none of which exists before it is read. */
export class MadeUpLog {
  constructor(lines) {
    this.total = lines;
    this.bytes = lines * LINE_BYTES;
    this.isOpen = false;
  }

  line(number) {
    const time = new Date(1794731248000 + number * 37).toISOString();
    const isError = number % 1_000_000 === 777_777;
    const text = isError
      ? `${time} \u001b[31mERROR\u001b[0m step ${number}: loss is not a number`
      : `${time} \u001b[32mINFO\u001b[0m step ${number} loss ${(4 / Math.log(number + 3)).toFixed(4)}`;
    return text.padEnd(LINE_BYTES - 1, ' ');
  }

  lines(first, count) {
    const end = Math.min(this.total, first + count);
    return Array.from({ length: Math.max(0, end - first) }, (_, at) => this.line(first + at));
  }

  offsetOf(line) {
    return Math.min(line, this.total) * LINE_BYTES;
  }

  lineAt(byte) {
    return Math.min(this.total, Math.floor(byte / LINE_BYTES));
  }
}

/** A log that is held in memory and can be added to, and cut, byte by byte. */
export class TextLog {
  #buffer = Buffer.alloc(0);
  #starts = [0];

  constructor(text = '') {
    this.append(text);
  }

  get bytes() {
    return this.#buffer.length;
  }

  get isOpen() {
    return this.bytes > 0 && this.#buffer[this.bytes - 1] !== 10;
  }

  get total() {
    return this.#starts.length - 1 + (this.isOpen ? 1 : 0);
  }

  append(more) {
    const bytes = typeof more === 'string' ? Buffer.from(more) : more;
    const before = this.bytes;
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    bytes.forEach((byte, at) => byte === 10 && this.#starts.push(before + at + 1));
  }

  cut(length) {
    this.#buffer = this.#buffer.subarray(0, length);
    this.#starts = this.#starts.filter((start) => start <= length);
  }

  slice(from, to) {
    return this.#buffer.subarray(from, to);
  }

  offsetOf(line) {
    return line < this.#starts.length ? this.#starts[line] : this.bytes;
  }

  lineAt(byte) {
    const found = this.#starts.findLastIndex((start) => start <= byte);
    return Math.max(0, found);
  }

  lines(first, count) {
    const end = Math.min(this.total, first + count);
    const lines = [];
    for (let line = first; line < end; line++) {
      const text = this.#buffer.subarray(this.offsetOf(line), this.offsetOf(line + 1)).toString();
      lines.push(text.endsWith('\n') ? text.slice(0, -1) : text);
    }
    return lines;
  }
}

export function read(log, from, limit = 200) {
  const count = Math.min(limit, 5000);
  let first = 0;
  if ('line' in from) first = from.line;
  else if ('byte' in from) first = log.lineAt(from.byte);
  else first = Math.max(0, log.total - Math.min(from.end, 5000));
  const lines = log.lines(first, 'end' in from ? from.end : count);
  return {
    first,
    begin: log.offsetOf(first),
    end: log.offsetOf(first + lines.length),
    lines,
    total: log.total,
    bytes: log.bytes,
    is_open: log.isOpen,
  };
}

export function search(log, { pattern, regex, case: isCase, limit = 1000 }) {
  const source = regex ? pattern : pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const expression = new RegExp(source, isCase ? '' : 'i');
  const lines = [];
  let found = 0;
  for (let first = 0; first < log.total; first += CHUNK_LINES) {
    log.lines(first, CHUNK_LINES).forEach((line, at) => {
      if (!expression.test(line)) return;
      found += 1;
      if (lines.length < limit) lines.push(first + at);
    });
    // The fake is slower than the real thing; a search of ten million lines is cut short.
    if (first > 2_000_000) break;
  }
  return { count: found, lines, searched: log.total };
}

export function firstError(log) {
  for (let first = 0; first < log.total; first += CHUNK_LINES) {
    const at = log.lines(first, CHUNK_LINES).findIndex((line) => /error|exception|traceback/i.test(line));
    if (at >= 0) return { line: first + at };
  }
  return { line: null };
}

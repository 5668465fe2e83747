import { expect, test } from 'vitest';
import { SseReader } from '../../src/api/sse';

const bytes = (text: string) => new TextEncoder().encode(text);

function read(chunks: (string | Uint8Array)[]): string[] {
  const reader = new SseReader();
  return chunks.flatMap((chunk) => reader.push(typeof chunk === 'string' ? bytes(chunk) : chunk));
}

test('an event is complete with its empty line', () => {
  expect(read(['data: one\n\ndata: two\n'])).toEqual(['one']);
  expect(read(['data: one\n\ndata: two\n', '\n'])).toEqual(['one', 'two']);
});

test('chunks may be split anywhere, also within a character', () => {
  const whole = bytes('data: {"text":"日本 🚀"}\r\n\r\ndata: b\r\n\r\n');
  for (let cut = 0; cut <= whole.length; cut++) {
    expect(read([whole.subarray(0, cut), whole.subarray(cut)]), `cut at ${cut}`).toEqual([
      '{"text":"日本 🚀"}',
      'b',
    ]);
  }
});

test('every line end counts: LF, CRLF and CR', () => {
  expect(read(['data: a\r\rdata: b\r\n\r\ndata: c\n\n'])).toEqual(['a', 'b', 'c']);
  expect(read(['data: a\r', '\n\r', '\n'])).toEqual(['a']);
});

test('several lines of data are one event; comments and other fields are none', () => {
  expect(read([': hello\n\ndata: a\ndata:b\nid: 4\n\n'])).toEqual(['a\nb']);
});

/**
 * Takes server-sent events apart. `push` gets the bytes as they come, split anywhere, and returns
 * the data of the events that are complete. Only `data` is used here: a server of ours sends
 * neither names nor ids.
 */
export class SseReader {
  #decoder = new TextDecoder();
  #rest = '';
  #data: string[] = [];
  #afterReturn = false;

  push(bytes: Uint8Array): string[] {
    let text = this.#decoder.decode(bytes, { stream: true });
    // A CR at the end of one chunk and an LF at the start of the next are one line end.
    if (this.#afterReturn && text.startsWith('\n')) text = text.slice(1);
    if (text) this.#afterReturn = text.endsWith('\r');
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      if (line === '') {
        if (this.#data.length > 0) events.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
      }
    }
    return events;
  }
}

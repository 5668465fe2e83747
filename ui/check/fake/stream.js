import { MadeUpLog } from './log-text.js';

const PART_BYTES = 64 * 1024;
let nextStream = 1;

const keyOf = ({ run, attempt, source }) => JSON.stringify([run, attempt, source]);

/** One open stream of events. `send` passes an item on. */
export class Stream {
  constructor(world, { cursor, logs = [] }, send) {
    this.name = `s${nextStream++}`;
    this.world = world;
    this.send = send;
    this.seen = world.changes.length;
    this.logs = new Map();
    const found = /^fake-(\d+)-0-0$/.exec(cursor ?? '');
    if (found && Number(found[1]) <= this.seen) this.seen = Number(found[1]);
    this.send({ item: 'begun', stream: this.name, cursor: `fake-${this.seen}-0-0` });
    if (cursor && !found) this.send({ item: 'reset', cursor: world.cursor() });
    this.follow(logs);
    world.watchers.add(this);
    this.changed();
  }

  /** A log that is followed already goes on where it is. */
  follow(logs) {
    const before = this.logs;
    this.logs = new Map(logs.map((log) => [keyOf(log), before.get(keyOf(log)) ?? { ...log }]));
    this.changed();
  }

  changed() {
    const changes = this.world.changes.slice(this.seen);
    if (changes.length > 0) {
      this.seen = this.world.changes.length;
      this.send({
        item: 'runs',
        cursor: `fake-${this.seen}-0-0`,
        events: changes.flatMap((change) => change.events),
        runs: [...new Map(changes.flatMap((change) => change.runs).map((run) => [run.id, run])).values()],
        removed: changes.flatMap((change) => change.removed),
      });
    }
    for (const followed of this.logs.values()) this.sendLog(followed);
  }

  sendLog(followed) {
    const log = this.world.log(followed);
    if (log instanceof MadeUpLog) return;
    const { run, attempt, source } = followed;
    if (log.bytes < followed.offset) {
      followed.offset = log.bytes;
      this.send({ item: 'log_cut', run, attempt, source, length: log.bytes });
    }
    while (followed.offset < log.bytes) {
      const bytes = log.slice(followed.offset, followed.offset + PART_BYTES);
      const text = bytes.toString();
      const content = Buffer.from(text).equals(bytes) ? { text } : { base64: bytes.toString('base64') };
      this.send({ item: 'log', run, attempt, source, offset: followed.offset, length: bytes.length, ...content });
      followed.offset += bytes.length;
    }
  }

  end() {
    this.world.watchers.delete(this);
  }
}

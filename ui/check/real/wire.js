import { connect, createServer } from 'node:net';
import { origin } from './real.js';

/**
 * A wire between the browser and the program that can be cut. The browser does not notice it:
 * `args` lead what it sends to the program's own address through the wire.
 */
export async function startWire() {
  const { port } = new URL(origin);
  const ends = new Set();
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return near.destroy();
    const far = connect(Number(port), '127.0.0.1');
    for (const [one, other] of [[near, far], [far, near]]) {
      ends.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        ends.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const cut = () => {
    isCut = true;
    for (const end of ends) end.destroy();
  };
  return {
    args: [`--host-resolver-rules=MAP 127.0.0.1:${port} 127.0.0.1:${server.address().port}`],
    used: () => ends.size > 0,
    cut,
    mend: () => (isCut = false),
    close() {
      cut();
      server.close();
    },
  };
}

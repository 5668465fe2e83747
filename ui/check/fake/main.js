// A fake `tow ui` to look at the page with: npm run fake -- --runs 100000 --port 8123
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { startFake } from './server.js';
import { RUN } from './world.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '300' },
    port: { type: 'string', default: '8123' },
    dist: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
    quiet: { type: 'boolean', default: false },
  },
});

const fake = await startFake({ dist: values.dist, port: Number(values.port), runs: Number(values.runs) });
process.stdout.write(`${fake.address()}\n`);

if (!values.quiet) {
  let step = 2000;
  const log = { run: RUN, attempt: 2, source: { rank: 0 } };
  setInterval(() => {
    step += 1;
    fake.world.append(log, `${new Date().toISOString()} \u001b[32mINFO\u001b[0m step ${step} loss ${(4 / Math.log(step)).toFixed(4)}\n`);
  }, 500);
}

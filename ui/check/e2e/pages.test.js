import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { FAILED, HOSTILE, RUN, SWEEP } from '../fake/world.js';
import { start, violations } from './page.js';

// Every page, with what shows that it is there.
const PAGES = [
  ['/runs', '.line a'],
  ['/runs?text=nothing-has-this-text', 'text=No run fits'],
  [`/run/${RUN}`, 'text=Attempts'],
  [`/run/${FAILED}`, 'text=missing Python module'],
  [`/run/${RUN}/logs`, '.log-lines .number'],
  [`/run/${HOSTILE}/logs`, '.log-lines .number'],
  [`/run/${RUN}/files?path=out&file=out/curve.png`, 'img'],
  [`/run/${RUN}/code?with=${FAILED}`, '.added'],
  [`/run/${RUN}/events`, 'td'],
  [`/run/${RUN}/plan`, 'pre'],
  [`/sweep/${SWEEP}`, 'text=Why runs failed'],
  ['/clusters', 'text=402 of 1,536 free'],
  ['/clusters/lab', 'text=node-017'],
  ['/clusters/aml-west', 'text=Signed in'],
  ['/data', 'text=Datastores'],
  ['/data/research/many', 'text=shard-000000.tar'],
  ['/data/./data', 'text=voc20'],
  ['/tunnels', 'text=failing'],
  ['/workspaces/work', 'td'],
  ['/submit', 'text=12 of 96 GPUs free'],
  [`/compare?runs=${RUN},${FAILED}`, '.added'],
  ['/nowhere', 'text=There is no such page'],
];

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 400]) {
    describe(`in ${colorScheme}, ${width} wide, usable by everybody, and nothing complains`, () => {
      let ui;
      before(async () => {
        ui = await start({ runs: 60, browser: { colorScheme, viewport: { width, height: 800 } } });
      });
      after(() => ui.close());

      for (const [address, sign] of PAGES) {
        test(address, async () => {
          const page = await ui.open(address);
          await page.locator(sign).first().waitFor();
          assert.deepEqual(await violations(page), []);
          assert.deepEqual(page.complaints, []);
          const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
          assert.ok(!wider, 'the page is wider than the window');
          await page.close();
        });
      }
    });
  }
}

test('the check itself finds what is wrong', async () => {
  const ui = await start({ runs: 5 });
  const page = await ui.open('/nowhere');
  await page.evaluate(() => document.querySelector('h1').insertAdjacentElement('afterend', document.createElement('button')));
  assert.match((await violations(page)).join(), /button-name/);
  await ui.close();
});

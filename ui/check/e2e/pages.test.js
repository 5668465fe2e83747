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

/** Whether it scrolls sideways: the document, or the part of it below the head. */
function isTooWide(page) {
  return page.evaluate(() => {
    const main = document.querySelector('main');
    return document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth;
  });
}

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
          // What lies below the bar of the form can be scrolled from there.
          if (address === '/submit') await page.setViewportSize({ width, height: 3000 });
          assert.deepEqual(await violations(page), []);
          assert.deepEqual(page.complaints, []);
          assert.ok(!(await isTooWide(page)), 'the page is wider than the window');
          await page.close();
        });
      }
    });
  }
}

for (const width of [360, 2560]) {
  test(`nothing scrolls sideways, ${width} wide`, async () => {
    const ui = await start({ runs: 60, browser: { viewport: { width, height: 800 } } });
    for (const [address, sign] of PAGES) {
      const page = await ui.open(address);
      await page.locator(sign).first().waitFor();
      assert.ok(!(await isTooWide(page)), address);
      await page.close();
    }
    await ui.close();
  });
}

test('a list to pick from stays inside a narrow window', async () => {
  const ui = await start({ runs: 60, browser: { viewport: { width: 360, height: 700 } } });
  const page = await ui.open('/runs');
  await page.getByRole('button', { name: 'Tag', exact: true }).click();
  await page.getByRole('group', { name: 'Tag' }).getByRole('checkbox').first().waitFor();
  assert.ok(!(await isTooWide(page)));
  await ui.close();
});

test('the check itself finds what is wrong', async () => {
  const ui = await start({ runs: 5 });
  const page = await ui.open('/nowhere');
  await page.evaluate(() => document.querySelector('h1').insertAdjacentElement('afterend', document.createElement('button')));
  assert.match((await violations(page)).join(), /button-name/);
  await ui.close();
});

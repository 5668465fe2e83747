import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FAILED, HOSTILE, RUN, SWEEP } from '../fake/world.js';
import { start, until, violations } from './page.js';

let ui;
let page;
before(async () => {
  ui = await start({ runs: 40 });
});
after(() => ui.close());

async function open(runs, more = '') {
  await page?.close();
  page = await ui.open(`/compare?runs=${runs.join(',')}${more}`);
  await page.getByRole('heading', { level: 1, name: 'Compare runs' }).waitFor();
  return page;
}

const cells = (name) => page.getByRole('row', { name: new RegExp(`^${name}`) }).first().getByRole('cell').allInnerTexts();

test('runs stand beside each other, and what differs is marked', async () => {
  await open([RUN, FAILED]);
  await page.getByRole('columnheader', { name: /train/ }).waitFor();
  assert.deepEqual(await cells('Cluster, differs|Cluster'), ['lab', 'aml-west']);
  assert.deepEqual(await cells('GPUs'), ['32', '8']);
  assert.deepEqual(await cells('In the queue'), ['10m 00s', '10m 00s']);
  assert.ok(await page.getByRole('row', { name: /^Tier/ }).evaluate((row) => !row.classList.contains('differs')));
  assert.ok(await page.getByRole('row', { name: /^GPUs/ }).evaluate((row) => row.classList.contains('differs')));
});

test('only differences are shown when asked, and the address says so', async () => {
  await open([RUN, FAILED]);
  await page.getByRole('rowheader', { name: 'Tier' }).waitFor();
  await page.getByRole('checkbox', { name: 'Only differences' }).check();
  await until(async () => (await page.getByRole('rowheader', { name: 'Tier' }).count()) === 0);
  assert.match(page.url(), /only=differences/);
  await page.reload();
  await page.getByRole('rowheader', { name: /^GPUs/ }).waitFor();
  assert.equal(await page.getByRole('rowheader', { name: 'Tier' }).count(), 0);
});

test('a sweep stands for its runs, and their parameters are rows', async () => {
  await open([SWEEP]);
  await page.getByText('12 runs;').waitFor();
  assert.deepEqual((await cells('lr')).slice(0, 3), ['0.1', '0.01', '0.001']);
  await page.getByRole('button', { name: 'Leave b1aee-2 out' }).click();
  await page.getByText('11 runs;').waitFor();
});

test('two of them are compared by code', async () => {
  await open([RUN, FAILED, `${SWEEP}-1`]);
  await page.locator('.added', { hasText: 'warmup = 500' }).waitFor();
  await page.getByLabel('to', { exact: true }).selectOption(`${SWEEP}-1`);
  await until(() => ui.fake.calls.some(({ call, args }) => call === 'diff' && args.one === RUN && args.other === `${SWEEP}-1`));
  await page.getByRole('button', { name: 'Swap' }).click();
  await until(() => page.url().includes(`one=${SWEEP}-1`), page.url());
});

test('a run that ends changes in its column', async () => {
  await open([RUN, FAILED]);
  await page.getByRole('columnheader', { name: /running/ }).waitFor();
  ui.fake.world.change(RUN, { state: 'succeeded', exit_code: 0, ended: new Date().toISOString() });
  await page.getByRole('columnheader', { name: /succeeded/ }).waitFor();
  ui.fake.world.change(RUN, { state: 'running', exit_code: null, ended: null });
});

test('one run is not enough, and an unknown one is an error', async () => {
  await open([RUN]);
  await page.getByText('Select two or more').waitFor();
  await open(['nothing-1-00000000', RUN]);
  await page.getByRole('alert').filter({ hasText: 'no run' }).waitFor();
});

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 400]) {
    test(`it can be used by everybody, in ${colorScheme}, ${width} wide`, async () => {
      await open([RUN, FAILED, HOSTILE, `${SWEEP}-1`]);
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await page.locator('.added').first().waitFor();
      assert.deepEqual(await violations(page), []);
      assert.deepEqual(page.complaints, []);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!wider, 'the page is wider than the window');
    });
  }
}

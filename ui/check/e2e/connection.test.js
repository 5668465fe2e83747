import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startFake } from '../fake/server.js';
import { RUN } from '../fake/world.js';
import { dist, start, until, violations } from './page.js';

let ui;
before(async () => {
  ui = await start({ runs: 20 });
});
after(() => ui.close());

test('without a token, or with another one, the page says what to do', async () => {
  const page = await ui.browser.open(`${ui.fake.origin}/`);
  await page.getByRole('heading', { name: 'This address has no token' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.goto('about:blank');
  await page.goto(`${ui.fake.origin}/#token=wrong&/runs`);
  await page.getByRole('heading', { name: 'This address is out of date' }).waitFor();
  await page.close();
});

test('when the program ends the page says so, keeps what it has, and goes on when it is back', async () => {
  const first = await startFake({ dist, runs: 20 });
  const { port } = new URL(first.origin);
  const page = await ui.browser.open(first.address());
  await page.locator('.line a').first().waitFor();
  await first.close();
  await page.getByText('has ended: start it again').waitFor({ timeout: 30_000 });
  assert.ok((await page.locator('.line a').count()) > 5, 'the rows are still there');
  assert.deepEqual(await violations(page), []);
  const second = await startFake({ dist, runs: 20, port: Number(port) });
  second.world.change(RUN, { state: 'succeeded' });
  await page.getByRole('button', { name: 'Try now' }).click();
  await until(async () => (await page.getByText('has ended: start it again').count()) === 0, 'the bar is gone');
  await page.close();
  await second.close();
});

test('a cluster that does not answer is named', async () => {
  const page = await ui.open('/runs');
  await page.locator('.line a').first().waitFor();
  ui.fake.tell({ item: 'clusters', clusters: [{ name: 'lab', seen: null, trouble: 'connection timed out' }] });
  await page.getByText('does not answer: connection timed out').waitFor();
  ui.fake.tell({ item: 'clusters', clusters: [{ name: 'lab', seen: null, trouble: null }] });
  await until(async () => (await page.getByText('does not answer').count()) === 0);
  await page.close();
});

test('the theme is chosen and stays', async () => {
  const page = await ui.open('/runs');
  await page.getByRole('button', { name: 'Theme of the system; change it' }).click();
  await page.getByRole('button', { name: 'Light theme; change it' }).click();
  await page.reload();
  await page.getByRole('button', { name: 'Dark theme; change it' }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.getByRole('button', { name: 'Dark theme; change it' }).click();
  await page.close();
});

test('the first Tab leads over the navigation to the content', async () => {
  const page = await ui.open('/runs');
  await page.locator('.line a').first().waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await page.close();
});

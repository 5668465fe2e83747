import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start, until, violations } from './page.js';

let ui;
let page;
before(async () => {
  ui = await start({ runs: 5 });
});
after(() => ui.close());

async function open(address) {
  await page?.close();
  page = await ui.open(address);
  return page;
}

const called = (name) => ui.fake.calls.filter(({ call }) => call === name).map(({ args }) => args);
const dialog = () => page.getByRole('dialog');

test('folders lead down, and the path leads up', async () => {
  await open('/data');
  await page.getByRole('link', { name: /^data/ }).click();
  await page.getByRole('link', { name: 'voc20' }).click();
  await page.getByText('b.bin').waitFor();
  assert.match(page.url(), /#\/data\/\.\/data\/voc20$/);
  await page.getByRole('navigation', { name: 'Path' }).getByRole('link', { name: 'data', exact: true }).click();
  await page.getByText('r\\u{202e}de.txt').first().waitFor();
  await page.goBack();
  await page.getByText('b.bin').waitFor();
});

test('a hundred thousand names scroll, and are filtered and sorted', async () => {
  await open('/data/research/many');
  await page.getByText('100,000 names').waitFor();
  assert.ok((await page.getByRole('row').count()) < 60);
  await page.locator('.scroller').evaluate((scroller) => (scroller.scrollTop = scroller.scrollHeight));
  await page.getByText('shard-099999.tar').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('0777');
  await page.getByText('of 100,000 names').waitFor();
  await page.getByRole('button', { name: 'Size' }).click();
  await until(async () => (await page.getByRole('row').nth(1).innerText()).includes('shard-090777.tar'));
});

test('a download shows what it would do, does it, and says how it went', async () => {
  await open('/data/./data/voc20');
  await page.getByLabel('Select all that are shown').click();
  await page.getByRole('button', { name: 'Download…' }).click();
  await dialog().getByText('/home/ann/vision/data/voc20').waitFor();
  await dialog().getByRole('button', { name: 'Show what would be copied' }).click();
  await dialog().getByText('2 files, 2.8 MB').first().waitFor();
  assert.deepEqual(called('down'), [{ paths: ['data/voc20/a.txt', 'data/voc20/b.bin'], dry_run: true }]);
  assert.deepEqual(await violations(page), []);
  await dialog().getByRole('button', { name: /^Copy 2 files/ }).click();
  await dialog().getByRole('progressbar').waitFor();
  await dialog().getByText('2 files, 2.8 MB copied').waitFor();
  assert.deepEqual(called('down').at(-1), { paths: ['data/voc20/a.txt', 'data/voc20/b.bin'], yes: true });
});

test('what `delete` would remove is shown before, and the button says it', async () => {
  await open('/data/./data');
  await page.getByRole('button', { name: 'Upload…' }).click();
  await dialog().getByText('Also remove files').click();
  await dialog().getByRole('button', { name: 'Show what would be copied' }).click();
  await dialog().getByText('old/left-over.txt').waitFor();
  await dialog().getByRole('button', { name: /and remove 1 file$/ }).waitFor();
});

test('a copy to another datastore needs one, can be stopped, and goes on', async () => {
  await open('/data/research/alice');
  await page.getByLabel('Select run1', { exact: true }).click();
  await page.getByRole('button', { name: 'Copy to…' }).click();
  await dialog().getByLabel('Copy into').fill('nsa:x');
  await dialog().getByRole('button', { name: 'Show what would be copied' }).click();
  await dialog().getByText('there is no datastore nsa').waitFor();
  await dialog().getByLabel('Copy into').fill('eu:archive');
  await dialog().getByRole('button', { name: 'Show what would be copied' }).click();
  await dialog().getByRole('button', { name: /^Copy 2 files/ }).click();
  await dialog().getByRole('button', { name: 'Stop' }).click();
  await dialog().getByText('goes on where it stopped').waitFor();
  await dialog().getByRole('button', { name: /^Copy 2 files/ }).click();
  await dialog().getByText('copied in').waitFor();
  assert.deepEqual(called('cp').at(-1), { from: 'research:alice/run1', to: 'eu:archive/', yes: true });
});

test('a folder goes only when its name is typed, and its neighbour stays', async () => {
  await open('/data/nas/alice/data');
  await page.getByLabel('Select coco', { exact: true }).click();
  await page.getByRole('button', { name: 'Remove…' }).click();
  await dialog().getByText('alice/data/coco/c.txt').waitFor();
  const remove = dialog().getByRole('button', { name: 'Remove 1 file' });
  assert.ok(await remove.isDisabled());
  await dialog().getByLabel('Type coco to remove it').fill('coco2017');
  assert.ok(await remove.isDisabled());
  assert.deepEqual(await violations(page), []);
  await dialog().getByLabel('Type coco to remove it').fill('coco');
  await remove.click();
  await page.getByText('1 file removed').waitFor();
  assert.deepEqual(called('rm').at(-1), { paths: ['nas:alice/data/coco'], yes: true });
  await until(async () => (await page.getByRole('link', { name: 'coco', exact: true }).count()) === 0);
  assert.equal(await page.getByRole('link', { name: 'coco2017' }).count(), 1);
});

test('an address to share says what it allows, and how to get one where it is refused', async () => {
  await open('/data/research/alice');
  await page.getByLabel('Address of labels.json').click();
  await dialog().getByLabel('Good for').fill('2h');
  await dialog().getByRole('button', { name: 'Make the address' }).click();
  await dialog().getByText('a SAS cannot sign another SAS').waitFor();
  await dialog().getByRole('checkbox').check();
  await dialog().getByRole('button', { name: 'Make the address' }).click();
  await dialog().getByText('read and write everything').waitFor();
  assert.deepEqual(called('url'), [{ path: 'research:alice/labels.json', for: '2h' }, { path: 'research:alice/labels.json', with_sas: true }]);
});

test('a file is saved by the browser', async () => {
  await open('/data/nas/alice/data/voc20');
  const download = page.waitForEvent('download');
  await page.getByLabel('Save a.txt').click();
  await download;
  assert.deepEqual(called('download').at(-1), { path: 'nas:alice/data/voc20/a.txt' });
});

test('with no datastore the page says which lines add one', async () => {
  ui.fake.world.hasNoStores = true;
  await open('/data');
  await page.getByText('datastores:').waitFor();
  await page.getByRole('button', { name: 'Copy', exact: true }).waitFor();
  assert.deepEqual(await violations(page), []);
  ui.fake.world.hasNoStores = false;
});

test('a place that is not there is said to be none, and can be tried again', async () => {
  await open('/data/nas/nothing');
  await page.getByText('there is nothing at').waitFor();
  await page.getByRole('button', { name: 'Try again' }).waitFor();
});

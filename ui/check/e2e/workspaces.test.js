import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { start, until, violations } from './page.js';

let ui;
let page;
before(async () => {
  ui = await start({ runs: 5 });
});
after(() => ui.close());

async function open() {
  await page?.close();
  page = await ui.open('/workspaces/work');
  await workspace().waitFor();
}

const called = (name) => ui.fake.calls.filter(({ call }) => call === name).map(({ args }) => args);
const workspace = (name = 'work') => page.getByRole('article', { name: `Workspace ${name}` });
const dialog = () => page.getByRole('dialog');

test('a backup is made, with its progress, and stands first', async () => {
  await open();
  await workspace().getByRole('row').nth(1).waitFor();
  await workspace().getByRole('button', { name: 'Back up now' }).click();
  await workspace().getByRole('progressbar').waitFor();
  await workspace().getByText('1 file kept changing').waitFor();
  await workspace().getByRole('row').nth(1).getByText('just now, the newest').waitFor();
});

test('failing backups say why, on their own card', async () => {
  await open();
  const failing = page.getByRole('article', { name: /^Workspace thesis/ });
  await failing.getByText('there is nothing to back up').waitFor();
  await failing.getByText('6 times in 3h').waitFor();
  await failing.getByRole('button', { name: 'Back up now' }).click();
  await failing.getByRole('alert').waitFor();
});

test('automatic backups are turned off and on', async () => {
  await open();
  await workspace().getByRole('button', { name: 'Turn off' }).click();
  await workspace().getByText('off', { exact: true }).waitFor();
  await workspace().getByRole('button', { name: 'Turn on…' }).click();
  await workspace().getByLabel('every').fill('often');
  await workspace().getByText('a time such as').waitFor();
  await workspace().getByLabel('every').fill('10m');
  await workspace().getByRole('button', { name: 'Turn on' }).click();
  await workspace().getByText('every 10m', { exact: true }).waitFor();
  assert.deepEqual(called('scratch.auto'), [{ name: 'work', off: true }, { name: 'work', every: '10m' }]);
});

test('an older backup is restored beside the workspace, and nothing is overwritten', async () => {
  await open();
  await workspace().getByRole('button', { name: /^Restore backup/ }).nth(2).click();
  await dialog().getByText('Nothing is overwritten').waitFor();
  await dialog().getByLabel('Folder', { exact: true }).fill('/full');
  await dialog().getByRole('button', { name: 'Restore' }).click();
  await dialog().getByText('/full is not empty').waitFor();
  await dialog().getByLabel('Folder', { exact: true }).fill('/tmp/then');
  await dialog().getByLabel('Only these files or folders').fill('src');
  assert.deepEqual(await violations(page), []);
  await dialog().getByRole('button', { name: 'Restore' }).click();
  await dialog().getByText('every byte checked').waitFor();
  const args = called('scratch.restore').at(-1);
  assert.deepEqual([args.name, args.path, args.only], ['work', '/tmp/then', ['src']]);
});

test('damage is found, named and set aside', async () => {
  await open();
  await page.getByRole('article', { name: /^Workspace thesis/ }).getByRole('button', { name: 'Check…' }).click();
  await dialog().getByRole('button', { name: 'Check' }).click();
  await dialog().getByText('touches backup 3f2a9c01d7e4').waitFor();
  await dialog().getByRole('button', { name: 'Set the damaged content aside' }).click();
  await dialog().getByText('is set aside').waitFor();
  assert.equal(called('scratch.check').at(-1).repair, true);
});

test('a prune is a plan first, which follows the numbers', async () => {
  await open();
  await workspace().getByRole('button', { name: 'Prune…' }).click();
  await dialog().getByText(/^\d+ backups and \d+ packs would go/).waitFor();
  await dialog().getByLabel('The newest').fill('4');
  await dialog().getByText('4 backups kept').waitFor();
  assert.ok(called('scratch.prune').every(({ yes }) => !yes));
  await dialog().getByRole('button', { name: /^Drop \d+ backups/ }).click();
  await dialog().getByText('dropped').waitFor();
  assert.deepEqual(called('scratch.prune').at(-1), { name: 'work', keep_last: 4, yes: true });
});

test('a workspace is made, and what is wrong stands beside its field', async () => {
  await open();
  await page.getByRole('button', { name: 'New workspace…' }).click();
  await dialog().getByLabel('Name').fill('second');
  await dialog().getByRole('button', { name: 'Create' }).click();
  await dialog().getByText('a folder, such as').waitFor();
  await dialog().getByLabel('Folder there').fill('/scratch/$USER/second');
  await dialog().getByLabel('Machine').fill('gone');
  await dialog().getByRole('button', { name: 'Create' }).click();
  await dialog().getByText('there is no host called').waitFor();
  await dialog().getByLabel('Machine').fill('tow-node');
  assert.deepEqual(await violations(page), []);
  await dialog().getByRole('button', { name: 'Create' }).click();
  await dialog().getByText('backed up every 30m').waitFor();
  assert.deepEqual(called('scratch.create').at(-1), { name: 'second', on: 'tow-node', path: '/scratch/$USER/second', auto: true });
  await workspace('second').waitFor();
});

test('with no workspace the page says what one is', async () => {
  ui.fake.world.workspaces = [];
  await page.reload();
  await page.getByText('No workspace yet').waitFor();
  await until(async () => (await violations(page)).length === 0);
});

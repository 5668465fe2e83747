import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { cluster, fresh, PATIENCE, start, store, towJson, until } from './real.js';

let ui;
let page;
let here;
before(async () => {
  here = mkdtempSync(join(tmpdir(), 'tow-places-'));
  ui = await start();
});
after(async () => {
  await ui.close();
  rmSync(here, { recursive: true, force: true });
});

const dialog = () => page.getByRole('dialog');
const press = (words) => dialog().getByRole('button', { name: words }).last().click();
const file = (path, text) => {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
};

test('the clusters page has this machine and the cluster, with what is free', async () => {
  page = await ui.show('/clusters');
  for (const { name } of (await towJson(['clusters'])).clusters) {
    const card = page.getByRole('article', { name, exact: true });
    await card.getByText('ready').waitFor();
    await card.getByText(/CPUs/).waitFor();
  }
});

test('a cluster has its nodes, as tow nodes has them', async () => {
  const nodes = await towJson(['nodes', cluster]);
  page = await ui.show(`/clusters/${cluster}`);
  const table = page.getByRole('region', { name: 'Table of nodes' });
  for (const { name } of nodes.nodes) await table.getByRole('cell', { name, exact: true }).first().waitFor();
  await page.getByText(`tow nodes ${cluster}`).waitFor();
  assert.deepEqual(page.complaints, []);
});

test('files go up, are seen, and come down again', async () => {
  const name = fresh('up');
  file(join(here, name, 'a.txt'), 'one\n');
  file(join(here, name, 'deep/b.bin'), Buffer.alloc(100_000, 7));
  mkdirSync(join(store, name));
  page = await ui.show(`/data/nas/${name}`);
  await page.getByRole('button', { name: 'Upload…' }).click();
  await dialog().getByLabel(/^This file or folder/).fill(join(here, name));
  await press('Show what would be copied');
  await dialog().getByText(/2 files, /).first().waitFor();
  assert.deepEqual(readdirSync(join(store, name)), [], 'nothing happens before one agrees');
  await press(/^Copy 2 files/);
  await dialog().getByText(/copied/).first().waitFor();
  await press('Close');
  const sent = readdirSync(join(store, name), { recursive: true }).filter((path) => path.endsWith('b.bin'));
  assert.equal(sent.length, 1);
  const folder = join(name, sent[0].replace(/\/?deep\/b\.bin$/, ''));
  assert.ok(readFileSync(join(store, folder, 'deep/b.bin')).equals(Buffer.alloc(100_000, 7)));

  page = await ui.show(`/data/nas/${folder}`);
  await page.getByLabel('Select all that are shown').click();
  await page.getByRole('button', { name: 'Download…' }).click();
  const target = join(here, `${name}-down`);
  await dialog().getByLabel(/^Into this folder/).fill(target);
  await press('Show what would be copied');
  await press(/^Copy 2 files/);
  await dialog().getByText(/copied/).first().waitFor();
  await until(() => readdirSync(target, { recursive: true }).filter((path) => /(a\.txt|b\.bin)$/.test(path)).length === 2, 'both files');
});

test('a file is saved by the browser, byte by byte', async () => {
  const name = fresh('save');
  file(join(store, name, 'odd.bin'), Buffer.from([0, 255, 10, 13]));
  page = await ui.show(`/data/nas/${name}`);
  const downloading = page.waitForEvent('download');
  await page.getByLabel('Save odd.bin').click();
  assert.deepEqual(readFileSync(await (await downloading).path()), Buffer.from([0, 255, 10, 13]));
});

test('a folder is copied to another place of the store', async () => {
  const name = fresh('copy');
  file(join(store, name, 'from/x.txt'), 'x');
  page = await ui.show(`/data/nas/${name}`);
  await page.getByLabel('Select from', { exact: true }).click();
  await page.getByRole('button', { name: 'Copy to…' }).click();
  await dialog().getByLabel('Copy into').fill('nsa:x');
  await press('Show what would be copied');
  await dialog().getByText('there is no datastore nsa').waitFor();
  await dialog().getByLabel('Copy into').fill(`nas:${name}-copied`);
  await press('Show what would be copied');
  await press(/^Copy 1 file/);
  await dialog().getByText(/copied/).first().waitFor();
  assert.ok(readdirSync(join(store, `${name}-copied`), { recursive: true }).some((path) => path.endsWith('x.txt')));
  assert.equal(readFileSync(join(store, name, 'from/x.txt'), 'utf8'), 'x');
});

test('a folder is removed when its name was typed, and its neighbour stays', async () => {
  const name = fresh('remove');
  file(join(store, name, 'coco/c.txt'), 'c');
  file(join(store, name, 'coco2017/c.txt'), 'c');
  page = await ui.show(`/data/nas/${name}`);
  await page.getByLabel('Select coco', { exact: true }).click();
  await page.getByRole('button', { name: 'Remove…' }).click();
  const remove = dialog().getByRole('button', { name: 'Remove 1 file' });
  await remove.waitFor();
  assert.ok(await remove.isDisabled());
  await dialog().getByLabel('Type coco to remove it').fill('coco2017');
  assert.ok(await remove.isDisabled());
  assert.ok(existsSync(join(store, name, 'coco/c.txt')));
  await dialog().getByLabel('Type coco to remove it').fill('coco');
  await remove.click();
  await page.getByText('1 file removed').waitFor();
  assert.ok(!existsSync(join(store, name, 'coco/c.txt')));
  assert.ok(existsSync(join(store, name, 'coco2017/c.txt')));
});

test('a tunnel is added, shown and removed', async () => {
  const name = fresh('box');
  page = await ui.show('/tunnels');
  await page.getByRole('button', { name: 'New tunnel…' }).click();
  await dialog().getByLabel('Name').fill(name);
  await dialog().getByRole('textbox', { name: 'To' }).fill('far:8888');
  await dialog().getByLabel('Open it at once').uncheck();
  await press('Add');
  const card = page.getByRole('article', { name: `Tunnel ${name}` });
  await card.getByText('closed', { exact: true }).waitFor();
  const known = async () => (await towJson(['tunnel', 'ls'])).tunnels.some((tunnel) => tunnel.name === name);
  assert.ok(await known());
  await card.getByRole('button', { name: 'Remove' }).click();
  await press('Remove');
  await until(async () => (await card.count()) === 0, 'the tunnel is gone');
  assert.ok(!(await known()));
});

test('a workspace is made, backed up, and restored into another folder', async () => {
  const name = fresh('work');
  const [folder, backups, restored] = ['', '-backups', '-restored'].map((end) => join(here, name + end));
  file(join(folder, 'src/model.py'), 'print(1)\n');
  page = await ui.show('/workspaces');
  await page.getByRole('button', { name: 'New workspace…' }).click();
  await dialog().getByLabel('Name').fill(name);
  await dialog().getByRole('button', { name: 'Create' }).click();
  await dialog().getByText('a folder, such as').waitFor();
  await dialog().getByLabel('Folder there').fill(folder);
  await dialog().getByLabel('Backups go to').fill(backups);
  const byItself = dialog().getByLabel('Back it up by itself');
  if (await byItself.isChecked()) await byItself.uncheck();
  await press('Create');
  await dialog().getByText(/^Backup .*1 file/).waitFor({ timeout: 3 * PATIENCE });
  await press('Close');
  const card = page.getByRole('article', { name: `Workspace ${name}` });
  file(join(folder, 'src/new.py'), 'print(2)\n');
  await card.getByRole('button', { name: 'Back up now' }).click();
  await card.getByText(/^Backup .*2 files/).waitFor({ timeout: 3 * PATIENCE });
  rmSync(join(folder, 'src/model.py'));
  await card.getByRole('button', { name: 'Restore…' }).first().click();
  await dialog().getByLabel(/Into another folder/).check();
  await dialog().getByLabel('Folder', { exact: true }).fill(folder);
  await press('Restore');
  await dialog().getByText(/is not empty; nothing/).waitFor();
  await dialog().getByLabel('Folder', { exact: true }).fill(restored);
  await press('Restore');
  await dialog().getByText('every byte checked').waitFor({ timeout: 3 * PATIENCE });
  assert.equal(readFileSync(join(restored, 'src/model.py'), 'utf8'), 'print(1)\n');
  assert.equal(readFileSync(join(restored, 'src/new.py'), 'utf8'), 'print(2)\n');
  assert.ok(!existsSync(join(folder, 'src/model.py')), 'the workspace itself stays as it is');
});

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
  page = await ui.open('/tunnels');
  await page.getByRole('article', { name: 'Tunnel box' }).waitFor();
}

const called = (name) => ui.fake.calls.filter(({ call }) => call === name).map(({ args }) => args);
const tunnel = (name) => page.getByRole('article', { name: `Tunnel ${name}` });

test('a tunnel is opened, watched while it connects, and closed', async () => {
  await open();
  await tunnel('old').getByText('does not let you in').waitFor();
  await tunnel('notebook').getByRole('button', { name: 'Open' }).click();
  await tunnel('notebook').getByText('connecting').waitFor();
  await tunnel('notebook').getByText('open', { exact: true }).waitFor();
  assert.deepEqual(called('tunnel.open'), [{ names: ['notebook'], no_wait: true }]);
  await tunnel('notebook').getByRole('button', { name: 'Close' }).click();
  await tunnel('notebook').getByText('closed', { exact: true }).waitFor();
});

test('only a closed tunnel can be removed, after a question', async () => {
  await open();
  assert.equal(await tunnel('box').getByRole('button', { name: 'Remove' }).count(), 0);
  await tunnel('notebook').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await until(async () => (await tunnel('notebook').count()) === 0);
});

test('a new tunnel is checked beside its fields, by the page and by the program', async () => {
  await open();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Add and open' }).click();
  await dialog.getByText('a name, such as box').waitFor();
  await dialog.getByLabel('Name').fill('inner');
  await dialog.getByRole('textbox', { name: 'To' }).fill('nowhere');
  await dialog.getByLabel('Port here').fill('22222');
  await dialog.getByText('that is the port of box').waitFor();
  await dialog.getByLabel('Port here').fill('');
  await dialog.getByRole('button', { name: 'Add and open' }).click();
  await dialog.getByText('there is no host called').waitFor();
  assert.equal(await dialog.getByRole('textbox', { name: 'To' }).getAttribute('aria-invalid'), 'true');
  assert.deepEqual(await violations(page), []);
  await dialog.getByRole('textbox', { name: 'To' }).fill('c1:8888');
  await dialog.getByLabel('Via').fill('bastion, login');
  await dialog.getByRole('button', { name: 'Add and open' }).click();
  await tunnel('inner').getByText('open', { exact: true }).waitFor();
  assert.deepEqual(called('tunnel.add').at(-1), { name: 'inner', to: 'c1:8888', via: 'bastion,login', open: true });
});

test('with no tunnel the page says what one is', async () => {
  ui.fake.world.tunnels = [];
  await page.reload();
  await page.getByText('No tunnel yet').waitFor();
  assert.deepEqual(await violations(page), []);
});

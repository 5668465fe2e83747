import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RUN } from '../fake/world.js';
import { start, until, violations } from './page.js';

let ui;
let page;
before(async () => {
  ui = await start({ runs: 20 });
});
after(() => ui.close());

async function open(address) {
  await page?.close();
  page = await ui.open(address);
  return page;
}

const called = (name) => ui.fake.calls.filter(({ call }) => call === name).map(({ args }) => args);

test('every cluster is asked by itself, and one that fails leaves the others', async () => {
  await open('/clusters');
  await page.getByText('402 of 1,536 free').waitFor();
  await page.getByText('nobody is signed in to cluster').waitFor();
  assert.deepEqual(new Set(called('clusters').map(({ cluster }) => cluster)), new Set(['local', 'lab', 'aml-west', 'sing']));
  const before = called('clusters').length;
  await page.getByRole('button', { name: 'Ask lab again' }).click();
  await until(() => called('clusters').length === before + 1);
  assert.equal(called('clusters').at(-1).cluster, 'lab');
});

test('trouble with a cluster comes with the events', async () => {
  await open('/clusters');
  await page.getByRole('article', { name: 'lab' }).waitFor();
  const seen = new Date(Date.now() - 11 * 60_000).toISOString();
  for (const watcher of ui.fake.world.watchers) {
    watcher.send({ item: 'clusters', clusters: [{ name: 'lab', seen, trouble: '`login` does not answer' }] });
  }
  await page.getByRole('article', { name: 'lab' }).getByText('Last heard of 11m ago').waitFor();
});

test('nodes are found by words, and lead to the runs that have them', async () => {
  await open('/clusters/lab');
  await page.getByRole('cell', { name: 'node-017' }).waitFor();
  await page.getByLabel('Filter nodes').fill('li.wei h100');
  await page.getByText('3 of 12 nodes').waitFor();
  await page.getByLabel('Filter nodes').fill('node-017');
  await page.getByRole('region', { name: 'Nodes' }).getByRole('link').click();
  await until(() => page.url().includes(`#/run/${RUN}`));
});

test('a job of the cluster is adopted, and then it is here', async () => {
  await open('/clusters/lab');
  await page.getByRole('button', { name: /^Adopt probe/ }).click();
  await page.getByText('is in your history now').waitFor();
  assert.deepEqual(called('adopt'), [{ id: 'probe-1794731300-77aa11bb', cluster: 'lab' }]);
  await page.getByRole('link', { name: 'a11bb' }).waitFor();
  // Hidden marks in the name of a stranger's job are seen.
  await page.getByText('bert\\u{202e}large').waitFor();
});

test('a code signs in, and nobody is signed in when it is given up', async () => {
  ui.fake.world.signInMs = 60_000;
  await open('/clusters/sing');
  await page.getByText('Nobody is signed in.').waitFor();
  await page.getByRole('button', { name: 'Sign in…' }).click();
  await page.getByRole('button', { name: 'Get a code' }).click();
  await page.getByText('FWXZ7K2QM').waitFor();
  const link = page.getByRole('link', { name: 'Open the sign-in page' });
  assert.equal(await link.getAttribute('href'), 'https://microsoft.com/devicelogin');
  assert.match(await link.getAttribute('rel'), /noreferrer/);
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Cancel' }).click();
  ui.fake.world.signInMs = 100;
  await page.getByRole('button', { name: 'Sign in…' }).click();
  await page.getByRole('button', { name: 'Get a code' }).click();
  await page.getByText('Signed in as').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click();
  await page.getByText('NDH100v5', { exact: true }).waitFor();
  await page.getByText('120 of 256 used').waitFor();
  await page.getByRole('button', { name: 'Sign out…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Nobody is signed in.').waitFor();
});

test('a role is activated for a while, and a refusal is shown where it was asked', async () => {
  await open('/clusters/aml-west');
  await page.getByRole('button', { name: 'Show my roles' }).click();
  await page.getByRole('button', { name: 'Activate…', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('For how long').fill('3d');
  await dialog.getByRole('button', { name: 'Activate', exact: true }).click();
  await dialog.getByRole('alert').getByText('the policy of this role allows 8h').waitFor();
  await dialog.getByLabel('For how long').fill('4h');
  await dialog.getByLabel('Why you need it').fill('new datastore');
  await dialog.getByRole('button', { name: 'Activate', exact: true }).click();
  await dialog.getByText('Active until').waitFor();
  const args = called('roles.activate').at(-1);
  assert.deepEqual([args.cluster, args.role, args.for, args.reason], ['aml-west', 'role-contributor', '4h', 'new datastore']);
});

test('nodes are held, named with their alias, and released after a question', async () => {
  await open('/clusters/lab');
  await page.getByRole('button', { name: 'Hold nodes…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('GPUs in all').fill('many');
  await dialog.getByRole('button', { name: 'Hold' }).click();
  await dialog.getByText('a whole number').waitFor();
  await dialog.getByLabel('GPUs in all').fill('8');
  await dialog.getByRole('button', { name: 'Hold' }).click();
  await dialog.getByText('node-024').waitFor();
  assert.deepEqual(called('alloc'), [{ cluster: 'lab', gpus: 8, time: '8h' }]);
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByRole('button', { name: 'ssh tow-node' }).waitFor();
  await page.getByRole('button', { name: 'Release' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
  await page.getByText('None. Held nodes are yours').waitFor();
});

test('what Azure has comes with the lines that add it', async () => {
  await open('/clusters');
  await page.getByRole('button', { name: 'Ask Azure' }).click();
  await page.getByText('msrresrchvc').first().click();
  await page.getByText('virtual_cluster: msrresrchvc').waitFor();
  assert.deepEqual(await violations(page), []);
});

test('an unknown cluster is said to be one', async () => {
  await open('/clusters/nowhere');
  await page.getByText('There is no cluster called nowhere').waitFor();
});

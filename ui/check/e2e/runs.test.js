import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RUN, SWEEP } from '../fake/world.js';
import { start, until } from './page.js';

let ui;
let page;
before(async () => {
  ui = await start({ runs: 2000 });
});
after(() => ui.close());

async function open(address) {
  await page?.close();
  page = await ui.open(address);
  await page.locator('.line a').first().waitFor();
  return page;
}

const names = () => page.locator('[role=table][aria-label=Runs] .line .name a').allInnerTexts();

test('the token leaves the address, and a second tab gets it from the first', async () => {
  await open('/runs');
  assert.equal(new URL(page.url()).hash, '#/runs');
  const other = await ui.browser.open(`${ui.fake.origin}/#/run/${RUN}`);
  await other.getByRole('heading', { level: 1, name: /train/ }).waitFor();
  await other.close();
});

test('filters and order live in the address', async () => {
  await open('/runs');
  await page.getByRole('button', { name: /^failed/ }).click();
  await page.keyboard.press('/');
  await page.keyboard.type('eval');
  await page.getByRole('columnheader', { name: 'Name' }).getByRole('button').click();
  await until(() => page.url().endsWith('#/runs?state=failed&text=eval&sort=name'), page.url());
  await until(async () => (await page.locator('.line .word').allInnerTexts()).every((word) => word === 'failed'));
  await page.reload();
  await page.locator('.line a').first().waitFor();
  assert.equal(await page.getByRole('searchbox', { name: /Words/ }).inputValue(), 'eval');
});

test('a run that changes, changes in its row, and counts follow', async () => {
  await open(`/runs?text=${RUN}`);
  await page.locator('.line .word', { hasText: 'running' }).waitFor();
  ui.fake.world.change(RUN, { state: 'failed', reason: 'out_of_memory' });
  await page.locator('.line .word', { hasText: 'failed' }).waitFor();
  await page.getByRole('button', { name: 'failed 1' }).waitFor();
  ui.fake.world.change(RUN, { state: 'running', reason: null });
});

test('a new run appears on top', async () => {
  await open('/runs');
  ui.fake.world.add({ id: 'fresh-1894731248-00c0ffee', name: 'fresh' });
  await until(async () => (await names())[0] === 'fresh', 'the new run on top');
  ui.fake.world.remove('fresh-1894731248-00c0ffee');
});

test('after a break nothing is missing', async () => {
  await open('/runs');
  await until(() => ui.fake.calls.some(({ call }) => call === 'events'));
  ui.fake.dropStreams();
  ui.fake.world.add({ id: 'during-1894731248-00c0ffef', name: 'during' });
  await until(async () => (await names())[0] === 'during', 'the run that came during the break');
  ui.fake.world.remove('during-1894731248-00c0ffef');
});

test('sweeps are one row, and unfold in place', async () => {
  await open(`/runs?text=${SWEEP}`);
  assert.equal((await names()).length, 1);
  await page.getByRole('button', { name: /^Unfold/ }).click();
  await page.getByRole('link', { name: 'grid', exact: true }).nth(12).waitFor();
  await page.getByRole('button', { name: /^Fold the/ }).click();
  await until(async () => (await names()).length === 1);
});

test('several are selected by shift and aborted after a question that names them', async () => {
  await open('/runs?state=queued&fold=no');
  const boxes = page.locator('.line input[type=checkbox]');
  await boxes.nth(0).click();
  await boxes.nth(2).click({ modifiers: ['Shift'] });
  await page.getByText('3 selected').waitFor();
  await page.getByRole('button', { name: 'Abort' }).click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.locator('li').count(), 3);
  await page.keyboard.press('Escape');
  assert.ok(!ui.fake.calls.some(({ call }) => call === 'abort'), 'nothing is aborted by a no');
  await page.getByRole('button', { name: 'Abort' }).click();
  await dialog.getByRole('button', { name: 'Abort' }).click();
  await page.getByText('3 runs being cancelled').waitFor();
  assert.equal(ui.fake.calls.find(({ call }) => call === 'abort').args.runs.length, 3);
});

test('all that fit can be selected', async () => {
  await open('/runs?state=succeeded&fold=no');
  await page.getByRole('checkbox', { name: 'Select all that fit' }).click();
  const total = ui.fake.world.counts().succeeded.toLocaleString('en-US');
  await page.getByText(`${total} selected`).waitFor();
});

test('keys move, select and open', async () => {
  await open('/runs?fold=no');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.getByText('1 selected').waitFor();
  const second = await page.locator('.is-at-cursor .name a').getAttribute('title');
  await page.keyboard.press('Enter');
  await until(() => page.url().includes(`#/run/${second}`), 'the run opens');
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await until(() => page.url().endsWith('#/runs'));
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('Go to Runs').waitFor();
  await page.keyboard.press('Escape');
  await until(async () => (await page.getByRole('dialog').count()) === 0, 'the dialog is closed');
});

test('a slash leads to the filter, the first Escape empties it and the second leaves it', async () => {
  await open('/runs');
  await page.keyboard.press('/');
  await page.keyboard.type('vitl');
  await until(() => page.url().endsWith('text=vitl'), 'the filter');
  await page.keyboard.press('Escape');
  await until(() => page.url().endsWith('#/runs'), 'no filter');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.locator('.is-at-cursor').waitFor();
});

test('pins stay on top, also in the next visit', async () => {
  await open(`/runs?text=${RUN}`);
  await page.getByRole('button', { name: /^Pin train/ }).click({ force: true });
  await page.getByRole('table', { name: 'Pinned runs' }).waitFor();
  await page.reload();
  await page.getByRole('table', { name: 'Pinned runs' }).getByText('d81da').waitFor();
});

test('an error of a verb is shown with its hints', async () => {
  await open(`/runs?text=${RUN}`);
  ui.fake.faults.refuse = {
    hold: { error: 'refused', message: 'it is running', hints: ['abort it: tow abort'], exit_code: 123 },
  };
  await page.locator('[aria-label=Runs] .line input').first().click();
  await page.getByRole('button', { name: 'Hold' }).click();
  await page.getByRole('alert').getByText('abort it: tow abort').waitFor();
  ui.fake.faults.refuse = null;
});

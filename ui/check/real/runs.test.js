import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { abort, ended, fresh, otherHome, rowOf, show, shows, start, submit, towJson, until } from './real.js';

let ui;
before(async () => {
  ui = await start();
});
after(() => ui.close());

const answer = (page, words) => page.getByRole('dialog').getByRole('button', { name: words, exact: true }).click();
const act = (page, words) => page.getByRole('toolbar', { name: 'Selected runs' }).getByRole('button', { name: words }).click();
const tick = (page, run) => rowOf(page, run).getByRole('checkbox').check();
const names = (page) => page.locator('[role=table][aria-label=Runs] .line .name a').allInnerTexts();

test('a run of the command line appears, and its state goes through to its end', async () => {
  const page = await ui.show('/runs');
  const [well, badly] = [fresh('well'), fresh('badly')];
  const one = await submit('sleep 5', ['--name', well]);
  const other = await submit('sleep 5; exit 3', ['--name', badly]);
  for (const run of [one, other]) {
    await rowOf(page, run).waitFor();
    await shows(rowOf(page, run), 'running');
  }
  await shows(rowOf(page, one), 'succeeded');
  await shows(rowOf(page, other), 'failed');
  await rowOf(page, other).getByText('exit 3', { exact: true }).waitFor();
  assert.deepEqual(page.complaints, []);
});

test('a sweep is one row that unfolds, and its progress follows', async () => {
  const name = fresh('sweep');
  const page = await ui.show(`/runs?text=${name}`);
  const sweep = await submit('test ${{k}} != b || exit 1; sleep ${{k}} 2>/dev/null || sleep 3', ['--name', name, '--sweep', 'k=3,b,4']);
  const row = rowOf(page, sweep);
  await row.waitFor();
  await row.getByText('3 runs').waitFor();
  assert.equal((await names(page)).length, 1);
  await row.getByRole('button', { name: /^Unfold/ }).click();
  await until(async () => (await names(page)).length === 4, 'the runs of the sweep');
  await row.getByRole('img', { name: '2 succeeded, 1 failed' }).waitFor();
  await page.getByText('k=b', { exact: true }).waitFor();
  await row.getByRole('button', { name: /^Fold/ }).click();
  await until(async () => (await names(page)).length === 1, 'one row');
  await row.locator('.name a').click();
  await page.getByRole('heading', { name: 'Why runs failed' }).waitFor();
  await page.getByRole('table', { name: 'Runs of the sweep' }).getByRole('row').nth(3).waitFor();
});

test('filters and order are in the address, and a link to it shows the same', async () => {
  const tag = fresh('tag');
  for (const [name, script] of [['beta', 'true'], ['alpha', 'true'], ['gamma', 'exit 1']]) {
    await ended(script, ['--name', `${name}-${tag}`, '--tag', tag]);
  }
  const page = await ui.show(`/runs?tag=${tag}`);
  await until(async () => (await names(page)).length === 3, 'three runs');
  await page.getByRole('button', { name: /^succeeded/ }).click();
  await page.getByRole('columnheader', { name: 'Name' }).getByRole('button').click();
  await until(() => page.url().endsWith(`#/runs?state=succeeded&tag=${tag}&sort=name`), page.url());
  const wanted = [`alpha-${tag}`, `beta-${tag}`];
  await until(async () => (await names(page)).join() === wanted.join(), 'two, by their names');
  await page.reload();
  await until(async () => (await names(page)).join() === wanted.join(), 'the same after a reload');
  await page.keyboard.press('/');
  await page.keyboard.type('beta');
  await until(async () => (await names(page)).join() === wanted[1], 'one by a word');
});

test('several are aborted, after a question that names them', async (t) => {
  const name = fresh('abort');
  const runs = [await submit('sleep 300', ['--name', name]), await submit('sleep 300', ['--name', name])];
  t.after(() => abort(...runs));
  const page = await ui.show(`/runs?text=${name}`);
  for (const run of runs) await tick(page, run);
  await act(page, 'Abort');
  assert.deepEqual((await page.getByRole('dialog').locator('li').allInnerTexts()).toSorted(), runs.toSorted());
  await answer(page, 'Cancel');
  for (const run of runs) assert.equal((await show(run)).cancel_requested, false, 'a no aborts nothing');
  await act(page, 'Abort');
  await answer(page, 'Abort');
  await page.getByText('2 runs being cancelled').waitFor();
  for (const run of runs) await shows(rowOf(page, run), 'cancelled');
  const found = (await towJson(['ps', '--state', 'cancelled'])).runs.map(({ id }) => id);
  for (const run of runs) assert.ok(found.includes(run), `tow ps has ${run} as cancelled`);
});

test('a run is submitted again, with its command', async () => {
  const name = fresh('again');
  const run = await ended('echo once', ['--name', name]);
  const page = await ui.show(`/runs?text=${name}`);
  await tick(page, run);
  await act(page, 'Resubmit');
  await answer(page, 'Resubmit');
  await page.getByText('submitted again as').waitFor();
  await until(async () => (await names(page)).length === 2, 'the new run is in the table');
  const { runs } = await towJson(['ps']);
  const [next] = runs.filter((one) => one.name === name && one.id !== run);
  assert.equal((await show(next.id)).resubmits, run);
  await shows(rowOf(page, next.id), 'succeeded');
});

test('a tag is added and removed, and tow knows it', async () => {
  const [name, tag] = [fresh('tagged'), fresh('best')];
  const run = await ended('true', ['--name', name, '--tag', 'try']);
  const page = await ui.show(`/runs?text=${name}`);
  await tick(page, run);
  await act(page, 'Tag');
  await page.getByRole('dialog').getByRole('textbox').fill(`${tag} -try`);
  await answer(page, 'Tag');
  await rowOf(page, run).getByText(tag).waitFor();
  assert.deepEqual((await show(run)).tags, [tag]);
  assert.equal(await rowOf(page, run).getByText('try', { exact: true }).count(), 0);
});

test('two runs are compared from the table', async () => {
  const name = fresh('compared');
  const runs = [await ended('exit 0', ['--name', name]), await ended('exit 4', ['--name', name, '--env', 'MODE=fast'])];
  const page = await ui.show(`/runs?text=${name}`);
  for (const run of runs) await tick(page, run);
  await page.getByRole('toolbar', { name: 'Selected runs' }).getByRole('link', { name: 'Compare' }).click();
  await page.getByRole('heading', { name: 'Compare runs' }).waitFor();
  await page.getByRole('columnheader', { name: /failed/ }).waitFor();
  await page.getByRole('region', { name: 'What differs' }).getByText('exit 4').waitFor();
  assert.match(page.url(), /#\/compare\?runs=/);
});

test('a pin stays on top, also in the next visit', async () => {
  const name = fresh('pinned');
  const run = await ended('true', ['--name', name]);
  const page = await ui.show(`/runs?text=${name}`);
  await rowOf(page, run).getByRole('button', { name: /^Pin/ }).click({ force: true });
  await page.getByRole('table', { name: 'Pinned runs' }).getByText(name).waitFor();
  const next = await ui.show('/runs?text=nothing-has-this-text');
  const pinned = next.getByRole('table', { name: 'Pinned runs' });
  await pinned.getByText(name).waitFor();
  await pinned.getByRole('button', { name: /^Unpin/ }).click({ force: true });
  await until(async () => (await pinned.count()) === 0, 'no pin');
});

test('in a home without runs the page says how to begin, and the first run comes live', async () => {
  const home = await otherHome();
  try {
    const page = await ui.show('/runs', home.page);
    await page.getByRole('heading', { name: 'No runs yet' }).waitFor();
    await page.getByText('tow run echo hello').waitFor();
    const { stdout } = await home.tow(['submit', 'true']);
    await shows(rowOf(page, stdout.trim()), 'succeeded');
  } finally {
    await home.close();
  }
});

test('what does not fit is said, and how to see all again', async (t) => {
  const run = await submit('sleep 300');
  t.after(() => abort(run));
  const page = await ui.show('/runs?text=nothing-has-this-text');
  await page.getByRole('button', { name: 'Show all runs' }).click();
  await rowOf(page, run).waitFor();
});

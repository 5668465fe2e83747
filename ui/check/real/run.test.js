import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { abort, cluster, ended, fresh, show, shows, start, submit, submitFile, tow, towJson, untilEnded, until } from './real.js';

let ui;
before(async () => {
  ui = await start();
});
after(() => ui.close());

// A picture of one point.
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const TRACEBACK = String.raw`printf 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    import sklearn\nModuleNotFoundError: No module named \047sklearn\047\n' >&2; exit 1`;

async function saved(page, button) {
  const downloading = page.waitForEvent('download');
  await button.click();
  return readFileSync(await (await downloading).path());
}

test('the overview follows a run, attempt by attempt', async () => {
  const run = await submitFile(`name: ${fresh('twice')}\nretry: {when: [exit_code], max: 2}\nscript: |\n  sleep 3\n  exit 7\n`);
  const page = await ui.show(`/run/${run}`);
  await shows(page.locator('header'), 'running');
  await shows(page.locator('header'), 'failed');
  await page.locator('.timeline').getByText('attempt 2').waitFor();
  assert.equal(await page.locator('.timeline .attempt').count(), 2);
  // A cluster may tell of a short attempt only once it is over.
  await page.locator('.timeline .span.running').nth(cluster === 'local' ? 1 : 0).waitFor();
  assert.equal((await show(run)).attempts.length, 2);
  await page.getByRole('link', { name: cluster, exact: true }).waitFor();
  assert.deepEqual(page.complaints, []);
});

test('a failed run says why, with its line in the log and the next step', async () => {
  const run = await ended(TRACEBACK, ['--name', fresh('why')]);
  const page = await ui.show(`/run/${run}`);
  const card = page.locator('section.why');
  const why = await towJson(['why', run]);
  await card.getByText(why.summary).waitFor();
  await page.locator('header .more', { hasText: 'exit 1' }).waitFor();
  await card.getByRole('button', { name: 'Copy the next step' }).waitFor();
  await card.getByRole('button', { name: 'Show in the log' }).click();
  await page.locator('.is-picked', { hasText: "No module named 'sklearn'" }).waitFor();
});

test('a run that waits says for what', async (t) => {
  const first = await submit('sleep 300', ['--name', fresh('first')]);
  t.after(() => abort(first));
  const next = await submit('true', ['--name', fresh('next'), '--after', `${first}:ended`]);
  const page = await ui.show(`/run/${next}`);
  await page.getByRole('heading', { name: 'Why it waits' }).waitFor();
  await page.locator('section.why').getByText(new RegExp(`after ${first.slice(-5)}`)).waitFor();
  await page.getByRole('button', { name: 'Hold' }).click();
  await shows(page.locator('header'), 'on hold');
  await page.getByRole('button', { name: 'Resume' }).click();
  await shows(page.locator('header'), 'queued|drafted');
  await abort(first);
  await shows(page.locator('header'), 'succeeded');
  assert.deepEqual(page.complaints, []);
});

test('an answer that comes after its card is gone disturbs nothing', async (t) => {
  const first = await submit('sleep 300', ['--name', fresh('first')]);
  t.after(() => abort(first));
  const next = await submit('true', ['--name', fresh('next'), '--after', `${first}:ended`]);
  const page = await ui.show('/runs');
  let release;
  const isReleased = new Promise((done) => (release = done));
  await page.route('**/api/why', async (route) => {
    await isReleased;
    await route.continue().catch(() => {});
  });
  await page.evaluate((run) => (location.hash = `#/run/${run}`), next);
  await shows(page.locator('header'), 'queued|drafted');
  await abort(first);
  await shows(page.locator('header'), 'succeeded');
  release();
  await page.getByRole('link', { name: 'Events' }).click();
  await page.getByRole('cell', { name: 'ended', exact: true }).waitFor();
  assert.deepEqual(page.complaints, []);
});

test('files are listed, previewed and downloaded byte by byte', async () => {
  const script = `mkdir -p out/deep; printf 'a\\000b\\377c\\n' > out/odd.bin; echo "words <b>here</b>" > out/deep/words.txt; echo ${PICTURE} | base64 -d > out/point.png`;
  const run = await ended(script, ['--name', fresh('files')]);
  const page = await ui.show(`/run/${run}/files`);
  const files = page.locator('.files');
  await files.getByRole('link', { name: 'train.py' }).waitFor();
  await files.getByRole('link', { name: 'out' }).click();
  assert.deepEqual(await saved(page, files.getByRole('button', { name: 'Download odd.bin' })), Buffer.from('a\0b\xffc\n', 'latin1'));
  await files.getByRole('link', { name: 'odd.bin' }).click();
  await page.getByText('No text and no picture').waitFor();
  await files.getByRole('link', { name: 'point.png' }).click();
  const image = page.getByRole('img', { name: 'out/point.png' });
  await until(() => image.evaluate((img) => img.naturalWidth === 1), 'the picture is drawn');
  await files.getByRole('link', { name: 'deep' }).click();
  await files.getByRole('link', { name: 'words.txt' }).click();
  await page.getByRole('region', { name: 'Content' }).getByText('words <b>here</b>').waitFor();
  await page.getByText(/^tow get [0-9a-f]{5} out\/deep\/words\.txt$/).waitFor();
  assert.deepEqual(page.complaints, []);
});

test('the code of two runs is compared after a file was changed', async () => {
  const [before, now] = [fresh('before'), fresh('now')];
  writeFileSync('train.py', `print("${before}")\n`);
  const one = await ended('true', ['--name', before]);
  writeFileSync('train.py', `print("${now}")\n`);
  const other = await ended('true', ['--name', now]);
  const page = await ui.show(`/run/${other}/code`);
  await page.getByText((await show(other)).snapshot).waitFor();
  await page.getByLabel('Differences to run').fill(one);
  await page.keyboard.press('Enter');
  await page.locator('.removed, .added', { hasText: now }).waitFor();
  await page.locator('.removed, .added', { hasText: before }).waitFor();
  assert.match(page.url(), new RegExp(`with=${one}$`));
});

test('events come as they happen', async () => {
  const run = await submit('sleep 3', ['--name', fresh('events')]);
  const page = await ui.show(`/run/${run}/events`);
  await page.getByRole('cell', { name: 'attempt started' }).waitFor();
  await page.getByRole('cell', { name: 'ended', exact: true }).waitFor();
  const { events } = await show(run);
  await until(async () => (await page.locator('tbody tr').count()) === events.length, 'as many as tow show has');
});

test('the plan has the job, and the same in a terminal', async () => {
  const run = await ended('echo planned', ['--name', fresh('plan'), '--time', '2h30m']);
  const page = await ui.show(`/run/${run}/plan`);
  const job = page.getByRole('region', { name: 'The job' });
  await job.getByText(/time: "?2h30m/).waitFor();
  await job.getByText(/echo planned/).waitFor();
  const line = await page.getByText(/^tow history /).innerText();
  const words = line.replace(/ >.*$/, '').split(' ').slice(1);
  const { code, stdout } = await tow(words);
  assert.equal(code, 0);
  assert.match(stdout, /echo planned/);
});

test('a run is submitted again from its page', async () => {
  const run = await ended('echo once', ['--name', fresh('again')]);
  const page = await ui.show(`/run/${run}`);
  await page.getByRole('button', { name: 'Resubmit' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resubmit' }).click();
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByRole('link', { name: run.slice(-5) }).waitFor();
  await shows(page.locator('header'), 'succeeded');
});

test('with changes it opens in the form, and begins from its job', async () => {
  const name = fresh('changed');
  const run = await submitFile(`name: ${name}\nresources: {time: 3h}\nscript: |\n  echo before\n`);
  await untilEnded(run);
  const page = await ui.show(`/run/${run}`);
  await page.getByRole('link', { name: 'Change and submit' }).click();
  await page.getByRole('heading', { name: 'Submit a job' }).waitFor();
  await until(async () => (await page.getByLabel('Name', { exact: true }).first().inputValue()) === name, 'the name');
  assert.equal(await page.getByLabel('Time limit', { exact: true }).inputValue(), '3h');
  assert.match(await page.getByLabel('Script', { exact: true }).inputValue(), /echo before/);
  await page.getByText(/Ready: 1 run/).waitFor();
});

test('a run that is not there is said to be none', async () => {
  const page = await ui.show('/run/nothing-1-00000000');
  await page.getByRole('alert').waitFor();
  await page.getByRole('link', { name: 'All runs', exact: true }).click();
  await page.getByRole('columnheader', { name: 'Name' }).waitFor();
});

import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { cluster, ended, fresh, logOf, PATIENCE, show, shows, start, tow, towJson, until } from './real.js';

let ui;
let page;
before(async () => {
  ui = await start({ viewport: { width: 1440, height: 900 } });
});
after(() => ui.close());

const field = (label) => page.getByLabel(label, { exact: true }).first();
const area = () => page.getByLabel('Job file', { exact: true });
const button = (words) => page.getByRole('button', { name: words, exact: true });
const dialog = () => page.getByRole('dialog');
const tab = (words) => page.getByRole('tab', { name: words });
const ready = (runs = '1 run') => page.getByText(`Ready: ${runs} on ${cluster}`).waitFor();
const idIn = (address) => decodeURIComponent(new URL(address).hash.split('/')[2].split('?')[0]);
const allRuns = async () => (await towJson(['ps', '--all'])).runs.length;

/** The form with nothing in it, or with a job of which the YAML stands beside it. */
async function open({ text = '', view = 'form', place = '/submit' } = {}) {
  page = await ui.show('/nowhere');
  await page.evaluate(
    ([draft, shown]) => {
      localStorage.clear();
      localStorage.setItem('towline-submit-draft', JSON.stringify({ text: draft }));
      localStorage.setItem('towline-submit-view', JSON.stringify(shown));
    },
    [text, view],
  );
  await page.evaluate((hash) => (location.hash = hash), `#${place}`);
  await page.getByRole('heading', { level: 1, name: 'Submit a job' }).waitFor();
  await page.getByRole('checkbox', { name: new RegExp(`^${cluster}`) }).waitFor({ state: view === 'yaml' ? 'detached' : 'visible' });
}

test('a filled form becomes a run that succeeds', async () => {
  const name = fresh('form');
  await open();
  await field('Script').fill('echo "from the form, $WORD"');
  await field('Name').fill(name);
  await page.getByRole('checkbox', { name: new RegExp(`^${cluster}`) }).check();
  await field('Time limit').fill('1h');
  await page.getByPlaceholder('NAME').fill('WORD');
  await page.keyboard.press('Enter');
  await page.getByLabel('Value of WORD').fill("it's 5 > 4");
  await ready();
  await button('Submit').click();
  await page.getByRole('heading', { level: 1, name: new RegExp(name) }).waitFor();
  const run = idIn(page.url());
  await shows(page.locator('header'), 'succeeded');
  const { job } = await show(run);
  assert.deepEqual([job.name, job.cluster, job.resources.time], [name, cluster, '1h']);
  assert.equal((await logOf(run)).toString(), "from the form, it's 5 > 4\n");
  assert.deepEqual(page.complaints, []);
});

test('what is wrong stands beside its field, in words of the program, and nothing is sent', async () => {
  const before = await allRuns();
  await open({ text: `cluster: ${cluster}\nresources: {time: soon}\nresorces: 1\ncommand: echo \${{lr}}\n` });
  const time = field('Time limit');
  await until(async () => (await time.getAttribute('aria-invalid')) === 'true', 'the field is marked');
  const described = (await time.getAttribute('aria-describedby')).split(' ');
  const texts = await Promise.all(described.map((id) => page.locator(`[id="${id}"]`).innerText()));
  const { stderr } = await tow(['submit', '-c', cluster, '--time', 'soon', '--dry-run', 'true']);
  assert.match(stderr, /soon/);
  assert.match(texts.join(' '), /soon/);
  await page.getByText(/did you mean resources/).first().waitFor();
  await page.getByRole('heading', { name: /things to mend before this can be sent/ }).waitFor();
  await button('Submit').click();
  await until(() => page.evaluate(() => document.activeElement?.matches('[aria-labelledby=to-mend]')), 'the summary has the focus');
  assert.equal(await allRuns(), before);
});

test('the dry run shows what would be sent, and sends nothing', async () => {
  const before = await allRuns();
  await open({ text: `cluster: ${cluster}\nresources: {time: 2h}\ncommand: echo dry\n` });
  await ready();
  await button('Dry run').click();
  const request = page.getByRole('region', { name: 'The request' });
  // The script of a cluster has its own words for the command.
  await request.getByText(cluster === 'local' ? 'echo dry' : '--time=').first().waitFor();
  const { request: sent } = await towJson(['submit', '-c', cluster, '--time', '2h', '--dry-run', 'echo', 'dry']);
  const options = (words) => words.split('\n').filter((line) => line.startsWith('#SBATCH --time'));
  assert.deepEqual(options(await request.innerText()), options(sent.text));
  assert.equal(await allRuns(), before);
  await tab('Same in a terminal').click();
  await page.getByText(`tow submit -c ${cluster} --time 2h 'echo dry'`).waitFor();
});

test('a sweep is shown before, run by run, and goes to its own page', async () => {
  const name = fresh('grid');
  await open();
  await field('Script').fill('echo ${{lr}} ${{seed}}');
  await field('Name').fill(name);
  await page.getByRole('checkbox', { name: new RegExp(`^${cluster}`) }).check();
  await field('Sweep').fill('lr: 0.1, 0.010\nseed: 1-2');
  await ready('4 runs');
  await tab(/^Runs/).click();
  const cells = await page.locator('[role=tabpanel] tbody td.mono').allInnerTexts();
  assert.deepEqual(cells, ['0.1', '1', '0.1', '2', '0.010', '1', '0.010', '2']);
  await button('Submit').click();
  await until(() => page.url().includes('#/sweep/'), page.url());
  await page.getByText('4 succeeded').first().waitFor({ timeout: 3 * PATIENCE });
  const { runs } = await towJson(['ps', idIn(page.url())]);
  assert.deepEqual(runs.map(({ parameters }) => `${parameters.lr} ${parameters.seed}`).toSorted(), ['0.010 1', '0.010 2', '0.1 1', '0.1 2']);
});

test('form and YAML are one job, and comments stay', async () => {
  await open({ view: 'both' });
  await area().fill(`# the large one\nname: a # short\ncluster: ${cluster}\ncommand: echo x\n`);
  await until(async () => (await field('Name').inputValue()) === 'a', 'the form has the name');
  await field('Name').fill('b');
  await until(async () => (await area().inputValue()).includes('name: b # short'), 'the YAML has the name');
  await field('Time limit').fill('3h');
  await until(async () => (await area().inputValue()).includes('time: 3h'), 'the YAML has the time');
  assert.match(await area().inputValue(), /^# the large one\n/);
  await ready();
  await area().fill('name: [b\n');
  await page.getByText('the form waits until it is mended').waitFor();
});

test('a former job is loaded from the history, and from a link', async () => {
  const name = fresh('former');
  const run = await ended('echo former', ['--name', name, '--time', '5h']);
  await open();
  await button('Load…').click();
  await page.getByLabel('Find a submission').fill(name);
  await dialog().getByRole('button', { name: new RegExp(name) }).click();
  await until(async () => (await field('Time limit').inputValue()) === '5h', 'the time limit');
  await field('Time limit').fill('6h');
  await tab('Changes').click();
  await page.locator('.added', { hasText: '6h' }).waitFor();
  await open({ place: `/submit?from=${run}` });
  await until(async () => (await field('Name').inputValue()) === name, 'the name by a link');
  assert.ok(page.url().endsWith('#/submit'));
});

test('a job is saved under a name and loaded again', async () => {
  const name = fresh('saved');
  await open({ text: `name: ${name}\ncommand: echo kept\n` });
  await button('Save as…').click();
  await dialog().getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText(`saved as ${name}`).waitFor();
  await button('Close this message').click();
  await field('Name').fill('other');
  await button('Load…').click();
  await dialog().getByRole('button', { name: 'Saved', exact: true }).click();
  await dialog().getByRole('button', { name: 'Load', exact: true }).click();
  await dialog().getByRole('button', { name: 'Load', exact: true }).click();
  await until(async () => (await field('Name').inputValue()) === name, 'the name is back');
});

test('the code preview counts what travels and names what is left out', async (t) => {
  const folder = fresh('left-out');
  mkdirSync(folder);
  writeFileSync(`${folder}/notes.txt`, 'x'.repeat(1000));
  t.after(() => rmSync(folder, { recursive: true }));
  await open({ text: `code: {ignore: [${folder}]}\ncommand: python train.py\n` });
  await tab('Code').click();
  const panel = page.getByRole('tabpanel');
  await panel.getByText(/files?, .* from/).waitFor();
  await panel.locator('li', { hasText: folder }).getByText(/--ignore|ignore/).first().waitFor();
  const explained = await towJson(['init', '--explain', '--ignore', folder]);
  await panel.locator('strong', { hasText: new RegExp(`^${explained.files} files?,`) }).waitFor();
});

test('what runs is the code of the moment of the submission', async () => {
  const word = fresh('frozen');
  writeFileSync('frozen.txt', word);
  await open({ text: `name: ${word}\ncluster: ${cluster}\nscript: |\n  sleep 2\n  cat frozen.txt\n` });
  await ready();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('heading', { level: 1, name: new RegExp(word) }).waitFor();
  writeFileSync('frozen.txt', 'later');
  await shows(page.locator('header'), 'succeeded');
  assert.equal((await logOf(idIn(page.url()))).toString(), word);
  rmSync('frozen.txt');
});

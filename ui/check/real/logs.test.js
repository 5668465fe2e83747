import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { abort, ended, fresh, logOf, PATIENCE, start, submit, towJson, until, untilEnded } from './real.js';
import { startWire } from './wire.js';

let ui;
before(async () => {
  ui = await start();
});
after(() => ui.close());

/** A script that writes numbered lines, four at once and twenty times a second. */
const writer = (count) => `i=0; while [ $i -lt ${count} ]; do i=$((i+1)); echo "line $i · ✓ of ${count}"; [ $((i % 4)) = 0 ] && sleep 0.05; done; exit 0`;
const written = (count) => Array.from({ length: count }, (_, at) => `line ${at + 1} · ✓ of ${count}`);

const text = (page, words) => page.locator('.log-lines .text', { hasText: words }).first();
const tool = (page, words) => page.getByRole('toolbar', { name: 'Log' }).getByRole('button', { name: words });
const pane = (page) => page.locator('section.pane').first();

async function open(run, query = '', browser = ui) {
  const page = await browser.show(`/run/${run}/logs${query}`);
  await page.locator('.log-lines .number').first().waitFor({ timeout: 3 * PATIENCE });
  return page;
}

/** The lines in view, by their number from 0. */
const inView = (page) =>
  pane(page)
    .locator('.log-lines .line')
    .evaluateAll((all) =>
      all
        .filter((line) => !line.querySelector('.coming'))
        .map((line) => [Number(line.querySelector('.number').textContent.replaceAll(',', '')) - 1, line.querySelector('.text').textContent]),
    );

/** Every line that the page shows, read by going through it from its begin to its end. */
async function allLines(page, count) {
  const lines = [];
  const list = pane(page).locator('.log-lines .scroller');
  const missing = () => Array.from({ length: count }).findIndex((_, at) => lines[at] === undefined);
  for (let next = missing(); next >= 0; next = missing()) {
    await list.evaluate((scroller, top) => (scroller.scrollTop = top), next * 20);
    await until(async () => {
      for (const [number, line] of await inView(page)) lines[number] = line;
      return lines[next] !== undefined;
    }, `line ${next + 1}`);
  }
  return lines;
}

const countOf = async (page) => Number((await pane(page).locator('header').innerText()).match(/([\d,]+) lines?,/)?.[1].replaceAll(',', '') ?? 0);

async function assertWhole(page, run, count) {
  await untilEnded(run);
  await until(async () => (await countOf(page)) === count, `${count} lines`);
  assert.deepEqual(await allLines(page, count), written(count));
  assert.equal((await logOf(run)).toString(), `${written(count).join('\n')}\n`);
}

test('what a job writes while the page follows arrives once and in its order', async () => {
  const run = await submit(writer(400), ['--name', fresh('writer')]);
  const page = await open(run);
  await text(page, 'line 400 ').waitFor({ timeout: 3 * PATIENCE });
  await assertWhole(page, run, 400);
  assert.deepEqual(page.complaints, []);
});

test('nothing is missing or doubled after the daemon was killed and the wire was cut', async (t) => {
  const wire = await startWire();
  const other = await start({ args: wire.args });
  t.after(() => Promise.all([other.close(), wire.close()]));
  const run = await submit(writer(1200), ['--name', fresh('broken')]);
  const page = await open(run, '', other);
  const growsBeyond = (count, what) => until(async () => (await countOf(page)) > count, what);
  const { status } = await towJson(['daemon', 'status']);
  if (status) process.kill(status.pid, 'SIGKILL');
  await growsBeyond(await countOf(page), 'lines after the daemon was killed');
  assert.ok(wire.used());
  wire.cut();
  const before = await countOf(page);
  await page.getByText(/Reconnecting…|has ended: start it again/).waitFor();
  const inTheFile = async () => (await logOf(run)).toString().split('\n').length;
  await until(async () => (await inTheFile()) > before + 50, 'lines that the page does not hear of');
  wire.mend();
  await growsBeyond(before + 50, 'lines after the wire was mended');
  wire.cut();
  wire.mend();
  await assertWhole(page, run, 1200);
});

test('who scrolls up is left alone, and told how much is new', async () => {
  const run = await submit(writer(600), ['--name', fresh('paused')]);
  const page = await open(run);
  await until(async () => (await countOf(page)) > 60, 'more lines than are in view');
  await page.locator('.log-lines .line').first().hover();
  await page.mouse.wheel(0, -400);
  await page.getByRole('button', { name: 'Follow', pressed: false }).waitFor();
  const before = await inView(page);
  const news = page.getByRole('button', { name: /new lines?$/ });
  await news.waitFor();
  assert.deepEqual(await inView(page), before);
  await untilEnded(run);
  await news.click();
  await text(page, 'line 600 ').waitFor();
});

test('a search counts in the whole log and goes from match to match', async () => {
  const run = await ended('i=0; while [ $i -lt 900 ]; do i=$((i+1)); echo "step $i loss"; done', ['--name', fresh('search')]);
  const page = await open(run);
  await page.keyboard.press('/');
  await page.keyboard.type('STEP 8');
  await page.getByText(/of 111 matches/).waitFor();
  await page.getByRole('button', { name: 'Regular expression' }).click();
  await page.getByLabel('Search the log').fill('step (7|77|777) ');
  await page.getByText(/of 3 matches/).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.is-picked mark').first().waitFor();
  await page.getByRole('button', { name: 'Capitals differ' }).click();
  await page.getByLabel('Search the log').fill('STEP');
  await page.getByText('0 matches').waitFor();
});

test('the first error is found, and its link shows it again', async () => {
  const script = 'i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo "fine $i"; [ $i = 321 ] && echo "RuntimeError: CUDA out of memory"; done; exit 1';
  const run = await ended(script, ['--name', fresh('error')]);
  const page = await open(run);
  await tool(page, 'First error').click();
  await page.locator('.is-picked', { hasText: 'CUDA out of memory' }).waitFor();
  const [, line] = page.url().match(/line=(\d+)$/);
  assert.equal(line, '322');
  await open(run, `?rank=0&line=${line}`);
  await ui.page.locator('.is-picked', { hasText: 'CUDA out of memory' }).waitFor();
});

test('colours are drawn, and a line that is written over shows its last state', async () => {
  const script = String.raw`printf 'a \033[31mred\033[0m \033[1;38;2;1;200;3mgreen\033[0m word\n'; printf ' 10%%\r 50%%\r100%% done\n'; printf 'so far\rnow'; sleep 4; printf '\rlast\n'`;
  const run = await submit(script, ['--name', fresh('colours')]);
  const page = await open(run);
  await text(page, /^now$/).waitFor({ timeout: 3 * PATIENCE });
  await text(page, /^last$/).waitFor();
  const colours = await page.locator('.log-lines .text span').evaluateAll((all) => all.map((span) => [span.textContent, getComputedStyle(span).color]));
  const [red] = colours.filter(([words]) => words === 'red');
  const [green] = colours.filter(([words]) => words === 'green');
  const plain = await text(page, 'done').evaluate((line) => getComputedStyle(line).color);
  assert.ok(red && green && red[1] !== plain && green[1] !== plain && red[1] !== green[1], JSON.stringify(colours));
  assert.deepEqual(await inView(page), [[0, 'a red green word'], [1, '100% done'], [2, 'last']]);
});

test('two ranks stand side by side, each with its own lines', async () => {
  const run = await submit('echo "I am $RANK"; sleep 3; echo "I was $RANK"', ['--name', fresh('ranks'), '--launch', '2']);
  const page = await open(run);
  await page.getByRole('button', { name: '2', exact: true }).click();
  for (const rank of [0, 1]) {
    const log = page.getByRole('region', { name: `Log of rank ${rank}` });
    await log.getByText(`I am ${rank}`).waitFor();
    await log.getByText(`I was ${rank}`).waitFor();
    assert.equal(await log.getByText(`I am ${1 - rank}`).count(), 0);
  }
  await abort(run);
});

test('a download has every byte of the log', async () => {
  const script = String.raw`printf 'odd \000\377\376 bytes\r\n'; head -c 300000 /dev/zero | tr '\0' x; printf '\nno end of line'`;
  const run = await ended(script, ['--name', fresh('download')]);
  const page = await open(run);
  const downloading = page.waitForEvent('download');
  await tool(page, 'Download').click();
  const bytes = readFileSync(await (await downloading).path());
  assert.equal(bytes.length, Buffer.byteLength('odd 000 bytes\r\n') + 300_000 + '\nno end of line'.length);
  const wanted = Buffer.concat([Buffer.from('odd \0\xff\xfe bytes\r\n', 'latin1'), Buffer.alloc(300_000, 'x'), Buffer.from('\nno end of line')]);
  assert.ok(bytes.equals(wanted), 'the bytes of the file');
});

test('a run that has not begun says that there is no log yet', async (t) => {
  const first = await submit('sleep 300', ['--name', fresh('first')]);
  t.after(() => abort(first));
  const run = await submit('echo begun', ['--name', fresh('later'), '--after', `${first}:ended`]);
  const page = await ui.show(`/run/${run}/logs`);
  await page.getByText('No log yet').waitFor();
  await abort(first);
  await text(page, 'begun').waitFor({ timeout: 3 * PATIENCE });
});

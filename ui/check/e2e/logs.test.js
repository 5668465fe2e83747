import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { FAILED, HOSTILE, LONG_LOG, RUN } from '../fake/world.js';
import { start, until } from './page.js';

const LOG = { run: RUN, attempt: 2, source: { rank: 0 } };
let ui;
let page;
before(async () => {
  ui = await start({ runs: 20 });
});
after(() => ui.close());

async function open(address) {
  await page?.close();
  page = await ui.open(address);
  await page.locator('.log-lines .number').first().waitFor();
}

/** Line numbers and texts that are in view. */
async function lines() {
  const all = await page.locator('.log-lines .line').allInnerTexts();
  return all.map((line) => line.replace(/^([\d,]+)\n?/, '$1|'));
}

const shows = (text) => page.locator('.log-lines .text', { hasText: text }).first().waitFor();

test('a log is followed: every byte once, over breaks, split characters and open lines', async () => {
  await open(`/run/${RUN}/logs`);
  await shows('step 1999');
  const rocket = Buffer.from('🚀');
  ui.fake.world.append(LOG, 'open ');
  await shows('open');
  ui.fake.world.append(LOG, rocket.subarray(0, 2));
  ui.fake.world.append(LOG, rocket.subarray(2));
  ui.fake.dropStreams();
  ui.fake.world.append(LOG, ' closed\n');
  for (let number = 0; number < 50; number++) ui.fake.world.append(LOG, `after the break ${number}\n`);
  await shows('after the break 49');
  const all = await lines();
  const after = all.filter((line) => line.includes('after the break'));
  assert.deepEqual(after.map((line) => Number(line.split(' ').at(-1))), [...after.keys()].map((at) => 50 - after.length + at));
  await page.getByRole('spinbutton', { name: 'Go to line' }).fill('2005');
  await page.keyboard.press('Enter');
  await shows('open 🚀 closed');
});

test('who scrolls up is left alone, and told of new lines', async () => {
  await open(`/run/${RUN}/logs?rank=1&attempt=2`);
  await shows('step 1999');
  await page.locator('.log-lines .line').first().hover();
  await page.mouse.wheel(0, -600);
  await page.getByRole('button', { name: 'Follow', pressed: false }).waitFor();
  const before = await lines();
  for (let number = 0; number < 7; number++) ui.fake.world.append({ ...LOG, source: { rank: 1 } }, `new ${number}\n`);
  await page.getByRole('button', { name: '7 new lines' }).waitFor();
  assert.deepEqual(await lines(), before);
  await page.getByRole('button', { name: '7 new lines' }).click();
  await shows('new 6');
});

test('ten million lines open at a line at once, and scroll by lines and by the bar', async () => {
  const began = Date.now();
  await open(`/run/${LONG_LOG}/logs?rank=0&line=5000000`);
  await shows('step 4999999');
  assert.ok(Date.now() - began < 8000, `it took ${Date.now() - began} ms`);
  const first = async () => Number((await lines())[0].split('|')[0].replaceAll(',', ''));
  const before = await first();
  await page.locator('.log-lines .line').nth(8).hover();
  await page.mouse.wheel(0, 200);
  await until(async () => (await first()) === before + 10, 'ten lines further down');
  await page.mouse.wheel(0, -100);
  await until(async () => (await first()) === before + 5, 'five lines up again');
  const scroll = (place) =>
    page.evaluate((at) => {
      const list = document.querySelector('.log-lines .scroller');
      list.scrollTop = at * list.scrollHeight;
    }, place);
  await scroll(1);
  await shows('step 9999999');
  await scroll(0);
  await until(async () => (await first()) === 1, 'the first line');
  await scroll(0.5);
  await until(async () => Math.abs((await first()) - 5_000_000) < 200_000, 'the middle');
});

test('search counts, marks and goes from match to match', async () => {
  await open(`/run/${RUN}/logs?rank=2&attempt=2`);
  await shows('step 1999');
  await page.keyboard.press('/');
  await page.keyboard.type('STEP 19(8|9)7 ');
  await page.getByText('0 matches').waitFor();
  await page.getByRole('button', { name: 'Regular expression' }).click();
  await page.getByText('1 of 2 matches').waitFor();
  await page.getByRole('button', { name: 'Next match' }).click();
  await page.getByText('2 of 2 matches').waitFor();
  assert.equal(await page.locator('.is-picked mark').first().innerText(), 'step 1997 ');
  assert.match(page.url(), /line=2002/);
  await page.getByRole('button', { name: 'Capitals differ' }).click();
  await page.getByText('0 matches').waitFor();
});

test('the first error, a link to its line, and the download', async () => {
  await open(`/run/${FAILED}/logs`);
  await page.getByRole('button', { name: 'First error' }).click();
  await page.locator('.is-picked', { hasText: 'Traceback' }).waitFor();
  assert.match(page.url(), new RegExp(`#/run/${FAILED}/logs\\?rank=0&line=122$`));
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  const path = await (await downloading).path();
  assert.match(readFileSync(path, 'utf8'), /No module named 'sklearn'/);
});

test('why leads to the line that it quotes', async () => {
  await page.close();
  page = await ui.open(`/run/${FAILED}`);
  await page.getByRole('button', { name: 'Show in the log' }).click();
  await page.locator('.is-picked', { hasText: 'ModuleNotFoundError' }).waitFor();
});

test('several ranks stand side by side, each in its own pane', async () => {
  await open(`/run/${RUN}/logs`);
  await page.getByRole('button', { name: '4', exact: true }).click();
  for (const rank of [0, 1, 2, 3]) await page.getByRole('region', { name: `Log of rank ${rank}` }).waitFor();
  assert.match(page.url(), /rank=0&rank=1&rank=2&rank=3/);
});

test('hostile bytes become text, and nothing else', async () => {
  await open(`/run/${HOSTILE}/logs`);
  await shows('<script>document.body.innerHTML');
  assert.equal(await page.locator('.log-lines .text script, .log-lines .text img, .log-lines .text a').count(), 0);
  await shows('user\\u{202e} txt.exe \\u{202c} and zero\\u{200b}width');
  await shows('title gone, link text stays');
  assert.deepEqual(page.complaints, []);
});

test('wrapped lines scroll to the end and back', async () => {
  await open(`/run/${HOSTILE}/logs`);
  await page.getByRole('button', { name: 'Wrap' }).click();
  await shows('tab');
  await page.locator('.log-lines .scroller').hover();
  await page.mouse.wheel(0, -5000);
  await page.mouse.wheel(0, -5000);
  await until(async () => (await lines())[0].startsWith('1|<script>'), 'the first line');
  const top = await page.locator('.log-lines .line').first().boundingBox();
  const view = await page.locator('.log-lines .scroller').boundingBox();
  assert.ok(Math.abs(top.y - view.y) < 2, `the first line stands at the top: ${top.y} ${view.y}`);
  await page.getByRole('button', { name: 'Follow' }).click();
  await until(async () => {
    const last = await page.locator('.log-lines .line').last().boundingBox();
    return Math.abs(last.y + last.height - view.y - view.height) < 2;
  }, 'the last line at the lower edge');
});

test('a log that its job cuts is shown anew, with a notice', async () => {
  await open(`/run/${RUN}/logs?rank=3&attempt=1`);
  await shows('step 1999');
  ui.fake.world.cut({ run: RUN, attempt: 1, source: { rank: 3 } }, 0);
  ui.fake.world.append({ run: RUN, attempt: 1, source: { rank: 3 } }, 'anew\n');
  await page.getByText('The job cut its own log').waitFor();
  await shows('anew');
});

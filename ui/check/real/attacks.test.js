import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { cluster, ended, fresh, origin, PATIENCE, rowOf, start, tow, until } from './real.js';

// What somebody else wrote must stay text: a log, a name, a file. If any of it ran, it would set
// `__owned`, show an element of its own, or ask for something outside this machine.
const PROGRAM = '<img src=x onerror="window.__owned=1"><script>window.__owned=1</script>';

let ui;
let strange;
before(async () => {
  ui = await start();
  strange = [];
  ui.context.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`) && !/^(data|blob|about):/.test(request.url())) strange.push(request.url());
  });
});
after(() => ui.close());

const text = (page, words) => page.locator('.log-lines .text', { hasText: words }).first();

async function assertHarmless(page) {
  assert.equal(await page.evaluate(() => window.__owned), undefined, 'a program of somebody else ran');
  assert.equal(await page.locator('main img[src="x"], main script, main iframe, main a[href^="javascript:"], main object').count(), 0);
  assert.deepEqual(page.complaints, []);
  assert.deepEqual(strange, []);
}

async function saved(page, button) {
  const downloading = page.waitForEvent('download');
  await button.click();
  const download = await downloading;
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

test('a hostile log is text, with what would hide in it made visible', async () => {
  writeFileSync(
    'hostile.log',
    Buffer.concat([
      Buffer.from(`</script>${PROGRAM}\n`),
      Buffer.from('\x1b]8;;javascript:window.__owned=1\x07click me\x1b]8;;\x07 \x1b]0;title\x07\x1b[2Jcleared\n'),
      Buffer.from('javascript:alert(1) https://evil.example/\n'),
      Buffer.from('txt.\u202eexe\u202c and zero\u200bwidth\n'),
      Buffer.from([0x6e, 0x75, 0x6c, 0, 0x20, 0xff, 0xfe, 0xc3, 0x28, 0x0a]),
      Buffer.alloc(1_000_000, 'A'),
      Buffer.from('\nlast line\n'),
    ]),
  );
  const run = await ended('cat hostile.log', ['--name', fresh('log')]);
  rmSync('hostile.log');
  const page = await ui.show(`/run/${run}/logs`);
  await text(page, 'last line').waitFor();
  await page.getByRole('button', { name: 'Follow', pressed: true }).waitFor();
  await page.locator('.log-lines .scroller').evaluate((list) => (list.scrollTop = 0));
  await text(page, '</script><img src=x onerror=').waitFor();
  await text(page, 'click me cleared').waitFor();
  await text(page, 'txt.\\u{202e}exe\\u{202c} and zero\\u{200b}width').waitFor();
  await text(page, 'nul\\u{0}').waitFor();
  await text(page, 'a very long line: the download has all of it').waitFor();
  assert.equal(await page.locator('.log-lines .text').locator('a, img, script').count(), 0);
  const began = Date.now();
  await page.getByLabel('Search the log').fill('last line');
  await page.getByText(/1 match/).waitFor();
  assert.ok(Date.now() - began < PATIENCE / 4, 'the page is not held up by a long line');
  await assertHarmless(page);
});

test('a hostile name, experiment, tag and command are text, wherever they stand', async () => {
  const word = fresh('x');
  const name = `${word} ${PROGRAM} \u202egnp`;
  const options = ['--name', name, '--experiment', `${word}${PROGRAM}`];
  const tagged = await tow(['submit', '-c', cluster, '--tag', `${word}${PROGRAM}`, '--', 'true']);
  const run = await ended(`: '${PROGRAM}'; printf '%s\\n' "Error: $0" >&2; exit 1`, [...options, ...(tagged.code === 0 ? ['--tag', `${word}${PROGRAM}`] : [])]);
  let page = await ui.show(`/runs?text=${word}`);
  await rowOf(page, run).waitFor();
  await page.getByRole('button', { name: 'Experiment' }).first().click();
  await page.getByRole('group', { name: 'Experiment' }).getByText(word).first().waitFor();
  await assertHarmless(page);
  const other = await ended('true', ['--name', name]);
  for (const place of [`/run/${run}`, `/run/${run}/events`, `/run/${run}/plan`, `/run/${run}/code`, `/compare?runs=${run},${other}`, `/submit?from=${run}`]) {
    page = await ui.show(place);
    await page.locator('main').getByText(word).first().waitFor({ state: 'attached' });
    await assertHarmless(page);
  }
  await until(async () => (await page.title()).includes(word), 'the title');
  assert.doesNotMatch(await page.title(), /\u202e/);
});

const NAMES = [`<img src=x onerror=window.__owned=1>.txt`, 'two\nlines.txt', '..﹨..﹨etc.txt', 'gnp\u202etxt.exe', '-rf', '$(touch owned).txt', "it's; touch owned.txt"];

test('hostile file names are text, are downloaded, and their command is quoted', async () => {
  const folder = fresh('names');
  mkdirSync(folder);
  NAMES.forEach((name, at) => writeFileSync(`${folder}/${name}`, `content ${at}`));
  const run = await ended('true', ['--name', folder]);
  rmSync(folder, { recursive: true });
  const page = await ui.show(`/run/${run}/files?path=${folder}`);
  const rows = page.locator('.files li');
  await until(async () => (await rows.count()) === NAMES.length, 'the files');
  const seen = [];
  for (let at = 0; at < NAMES.length; at++) {
    const { bytes } = await saved(page, rows.nth(at).getByRole('button', { name: /^Download/ }));
    seen.push(bytes.toString());
    await rows.nth(at).getByRole('link').click();
    await page.getByRole('region', { name: 'Content' }).getByText(bytes.toString(), { exact: true }).waitFor();
  }
  assert.deepEqual(seen.toSorted(), NAMES.map((_, at) => `content ${at}`));
  await rows.filter({ hasText: '$(touch owned)' }).getByRole('link').click();
  await page.locator('.same code', { hasText: `'${folder}/$(touch owned).txt'` }).waitFor();
  await page.locator('.files li', { hasText: '\\u{202e}' }).waitFor();
  await assertHarmless(page);
});

test('a page or a picture with a program in it is shown as text, and downloaded as a file', async () => {
  const folder = fresh('pages');
  mkdirSync(folder);
  const html = `<!doctype html><script>window.__owned=1;opener&&(opener.__owned=1)</script>${PROGRAM}`;
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.__owned=1"><script>window.__owned=1</script></svg>';
  writeFileSync(`${folder}/report.html`, html);
  writeFileSync(`${folder}/plot.svg`, svg);
  writeFileSync(`${folder}/fake.png`, svg);
  const run = await ended('true', ['--name', folder]);
  rmSync(folder, { recursive: true });
  const page = await ui.show(`/run/${run}/files?path=${folder}`);
  for (const [name, content] of [['report.html', html], ['plot.svg', svg], ['fake.png', svg]]) {
    const row = page.locator('.files li', { hasText: name });
    await row.getByRole('link').click();
    await page.getByRole('region', { name: `Preview of ${folder}/${name}` }).locator('pre, img').first().waitFor();
    const download = await saved(page, row.getByRole('button', { name: /^Download/ }));
    const { path } = JSON.parse((await call(page, 'download', { run, file: `${folder}/${name}` })).text);
    const headers = await page.evaluate(async (at) => Object.fromEntries((await fetch(at)).headers), path);
    assert.match(headers['content-disposition'], /^attachment/);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.doesNotMatch(headers['content-type'] ?? '', /html|svg|xml/);
    assert.equal(download.bytes.toString(), content);
    await assertHarmless(page);
  }
});

test('a link in the folder of a run leads nowhere', async () => {
  const secret = fresh('secret-words');
  const outside = `${process.env.HOME}/${fresh('outside')}`;
  mkdirSync(outside, { recursive: true });
  writeFileSync(`${outside}/private.txt`, secret);
  const run = await ended(`mkdir out; ln -s /etc/passwd out/passwd; ln -s ${outside}/private.txt out/private.txt; ln -s ${outside} out/folder; echo fine > out/fine.txt`, ['--name', fresh('links')]);
  const answers = [];
  const page = await ui.show('/nowhere');
  page.on('response', async (response) => answers.push(await response.text().catch(() => '')));
  for (const query of ['path=out', 'path=out&file=out/passwd', 'path=out&file=out/private.txt', 'path=out/folder', 'path=out&file=out/folder/private.txt', 'path=../..', 'file=../../../../../../etc/passwd', 'file=/etc/passwd', `file=${outside}/private.txt`]) {
    const heard = page.waitForResponse(/api\/files\.(list|read)/);
    await page.evaluate((hash) => (location.hash = hash), `#/run/${run}/files?${query}`);
    await heard;
    await page.locator('.files').getByText(/fine\.txt|no files here|\w{4}/).first().waitFor();
  }
  const read = async (args) => (await call(page, 'files.read', { run, limit: 1000, ...args })).text;
  const fine = await call(page, 'files.read', { run, path: 'out/fine.txt', limit: 1000 });
  assert.match(fine.text, /fine/);
  for (const path of ['out/passwd', 'out/private.txt', 'out/folder/private.txt', '../../../../../../etc/passwd', '/etc/passwd']) {
    assert.doesNotMatch(await read({ path }), new RegExp(`root:|${secret}`), path);
    const { text: told } = await call(page, 'download', { run, file: path });
    const place = /"path":"([^"]+)"/.exec(told)?.[1];
    const body = place ? await page.evaluate(async (at) => (await fetch(at)).text(), place) : '';
    assert.doesNotMatch(body, new RegExp(`root:|${secret}`), path);
  }
  assert.doesNotMatch(answers.join(), new RegExp(`root:x:|${secret}`));
});

/** A call of the program, made inside the page with its own token. */
async function call(page, name, args) {
  return page.evaluate(
    async ([verb, body]) => {
      const headers = { 'Content-Type': 'application/json', 'X-Towline-Token': sessionStorage.getItem('towline-token') };
      const response = await fetch(`api/${verb}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return { status: response.status, text: await response.text() };
    },
    [name, args],
  );
}

test('no request leaves this machine on a walk through every page', async () => {
  const run = await ended('echo https://evil.example/x.png', ['--name', fresh('walk')]);
  const tabs = ['', '/logs', '/files', '/code', '/events', '/plan'].map((tab) => `/run/${run}${tab}`);
  const places = ['/runs', ...tabs, '/submit', '/clusters', `/clusters/${cluster}`, '/data', '/data/nas', '/tunnels', '/workspaces', `/compare?runs=${run},@`, '/nowhere'];
  const asked = [];
  ui.context.on('request', (request) => asked.push(request.url()));
  for (const place of places) {
    const page = await ui.show(place);
    await page.locator('h1').first().waitFor({ state: 'attached' });
  }
  assert.ok(asked.length > places.length, 'the requests were seen');
  assert.deepEqual([...new Set(asked.map((url) => new URL(url).origin))], [origin]);
  assert.deepEqual(strange, []);
});

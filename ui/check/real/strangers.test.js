import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { abort, cluster, fresh, origin, rowOf, show, shows, start, submit, towJson, until } from './real.js';

// Somebody else's page in the same browser, and what it could try. It has a signal that its own
// tries work at all: what it asks of its own server arrives.

const { port } = new URL(origin);
const token = new URL(process.env.TOW_PAGE).hash.replace('#token=', '');
let ui;
let evil;
before(async () => {
  evil = await startEvil();
  ui = await start({ args: ['--host-resolver-rules=MAP evil.test 127.0.0.1', '--disable-popup-blocking'] });
});
after(async () => {
  await ui.close();
  await evil.close();
});

async function startEvil() {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { 'Content-Type': 'text/html', 'Access-Control-Allow-Origin': '*' });
    response.end('<!doctype html><title>evil</title><body>evil');
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    asked,
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
}

async function strangersPage() {
  const page = await ui.context.newPage();
  await page.goto(evil.origin);
  return page;
}

/** A run that a stranger would like to end, and what else is there. */
async function target(t) {
  const run = await submit('sleep 300', ['--name', fresh('target')]);
  t.after(() => abort(run));
  return { run, count: (await towJson(['ps', '--all'])).runs.length };
}

async function assertUnchanged({ run, count }) {
  assert.equal((await towJson(['ps', '--all'])).runs.length, count, 'a stranger has submitted a run');
  const { cancel_requested: isCancelled, tags } = await show(run);
  assert.deepEqual([isCancelled, tags], [false, []], 'a stranger has changed a run');
}

test('a page of another origin can neither read nor change anything, whatever it sends', async (t) => {
  const aim = await target(t);
  const page = await strangersPage();
  const tries = await page.evaluate(
    async ([there, own, run, key]) => {
      const body = JSON.stringify({ runs: [run] });
      const json = { 'Content-Type': 'application/json', 'X-Towline-Token': key };
      const kinds = [
        { mode: 'cors', headers: json },
        { mode: 'cors', headers: json, credentials: 'include' },
        { mode: 'no-cors', headers: { 'Content-Type': 'text/plain' } },
        { mode: 'no-cors', headers: json },
        { mode: 'cors', headers: { 'Content-Type': 'text/plain' } },
      ];
      const ask = (url, options) => fetch(url, options).then((answer) => answer.text(), () => 'refused');
      const told = [];
      for (const kind of kinds) for (const call of ['abort', 'runs.page', 'submit']) told.push(await ask(`${there}/api/${call}`, { method: 'POST', body, ...kind }));
      told.push(await ask(`${there}/`, {}), await ask(`${there}/assets/index.js`, {}));
      navigator.sendBeacon(`${there}/api/abort`, body);
      const wire = new WebSocket(`${there.replace('http', 'ws')}/api/events`);
      told.push(await new Promise((done) => ((wire.onopen = () => done('open')), (wire.onerror = () => done('refused')))));
      const events = new EventSource(`${there}/api/events`);
      told.push(await new Promise((done) => ((events.onopen = () => done('open')), (events.onerror = () => done('refused')))));
      return { told, ours: await ask(`${own}/works`, {}) };
    },
    [origin, evil.origin, aim.run, token],
  );
  assert.match(tries.ours, /evil/, 'the tries themselves work');
  for (const told of tries.told) assert.match(told, /^(refused|)$/, 'nothing can be read');
  await assertUnchanged(aim);
});

test('the token alone, without the page, does nothing for another origin', async (t) => {
  const aim = await target(t);
  const page = await strangersPage();
  const forms = [
    ['text/plain', { [`{"runs":["${aim.run}"],"x":"`]: '"}' }],
    ['application/x-www-form-urlencoded', { runs: aim.run, token }],
    ['multipart/form-data', { runs: aim.run, token }],
  ];
  for (const [kind, fields] of forms) {
    const answered = page.waitForResponse((response) => response.url().startsWith(`${origin}/api/abort`));
    await page.evaluate(
      ([to, enctype, values]) => {
        const form = Object.assign(document.createElement('form'), { method: 'POST', action: to, enctype });
        for (const [name, value] of Object.entries(values)) form.append(Object.assign(document.createElement('input'), { name, value }));
        document.body.append(form);
        form.submit();
      },
      [`${origin}/api/abort?token=${token}`, kind, fields],
    );
    assert.ok((await answered).status() >= 400, kind);
    await page.waitForURL(`${origin}/**`);
    await page.goto(evil.origin);
  }
  await assertUnchanged(aim);
});

test('the page is in no frame, no picture and no script of a stranger', async () => {
  const page = await strangersPage();
  const loaded = await page.evaluate(
    async ([there, own]) => {
      const seen = {};
      const tried = (element, to, key) =>
        new Promise((done) => {
          element.onload = () => done((seen[key] = 'loaded'));
          element.onerror = () => done((seen[key] = 'refused'));
          Object.assign(element, { src: to });
          document.body.append(element);
        });
      await tried(new Image(), `${there}/`, 'picture');
      await tried(document.createElement('script'), `${there}/assets/index.js`, 'script');
      const [frame, ours] = [document.createElement('iframe'), document.createElement('iframe')];
      await tried(frame, `${there}/`, 'frame');
      await tried(ours, `${own}/framed`, 'ours');
      return seen;
    },
    [origin, evil.origin],
  );
  assert.equal(loaded.picture, 'refused');
  assert.equal(loaded.script, 'refused');
  assert.ok(evil.asked.includes('/framed'), 'a frame of its own works');
  const framed = page.frames().find((frame) => frame.parentFrame() && !frame.url().startsWith(evil.origin));
  assert.ok(!framed || !(await framed.content()).includes('id="page"'), 'the page was shown in a frame');
});

test('a name of a stranger that leads to this machine is refused', async (t) => {
  const aim = await target(t);
  const page = await ui.context.newPage();
  const answer = await page.goto(`http://evil.test:${port}/#token=${token}`);
  assert.equal(answer.status(), 421);
  assert.equal(await page.locator('#page').count(), 0);
  const told = await page.evaluate(
    async ([run, key]) => {
      const headers = { 'Content-Type': 'application/json', 'X-Towline-Token': key };
      const response = await fetch('/api/abort', { method: 'POST', headers, body: JSON.stringify({ runs: [run] }) });
      return response.status;
    },
    [aim.run, token],
  );
  assert.equal(told, 421);
  const own = await page.goto(`http://evil.test:${new URL(evil.origin).port}/rebound`);
  assert.equal(own.status(), 200, 'the name does lead to this machine');
  await assertUnchanged(aim);
});

test('a page that opened ours cannot reach into it, and ours does not tell where it comes from', async () => {
  const page = await strangersPage();
  const opening = ui.context.waitForEvent('page');
  await page.evaluate((to) => void (globalThis.opened = open(to)), `${origin}/#token=${token}&/runs`);
  const ours = await opening;
  await ours.getByRole('link', { name: 'Submit', exact: true }).waitFor();
  await page.evaluate(() => globalThis.opened?.postMessage({ wanted: true, token: 'x' }, '*'));
  const read = await page.evaluate(() => {
    try {
      return String(globalThis.opened?.sessionStorage.getItem('towline-token') ?? 'nothing');
    } catch {
      return 'refused';
    }
  });
  assert.match(read, /^(refused|nothing)$/);
  assert.equal(await ours.evaluate(() => globalThis.opener?.origin ?? null).catch(() => null), null);
  await ours.close();
});

test('the token leaves the address, and is kept for this tab alone', async () => {
  const page = await ui.show('/clusters');
  await page.getByRole('heading', { name: 'Clusters' }).waitFor();
  assert.equal(page.url(), `${origin}/#/clusters`);
  const kept = await page.evaluate(() => [document.cookie, JSON.stringify({ ...localStorage }), document.documentElement.outerHTML, history.state]);
  assert.ok(!JSON.stringify(kept).includes(token), 'the token is where others find it');
  assert.deepEqual(await ui.context.cookies(), []);
  assert.equal(await page.evaluate(() => sessionStorage.getItem('towline-token')), token, 'where it is kept');
});

test('without a token, or with a wrong one, the page says what to do and shows nothing', async (t) => {
  const other = await start();
  t.after(() => other.close());
  const page = await other.open(`${origin}/`);
  await page.getByRole('heading', { name: 'This address has no token' }).waitFor();
  await page.goto('about:blank');
  await page.goto(`${origin}/#token=${token.replace(/.$/, (last) => (last === '0' ? '1' : '0'))}&/runs`);
  await page.getByRole('heading', { name: 'This address is out of date' }).waitFor();
  await page.getByText('tow ui').first().waitFor();
  assert.equal(await page.locator('.line').filter({ has: page.locator('a') }).count(), 0);
});

test('the policy lets no script in that is not the page’s own', async () => {
  const page = await ui.show('/runs');
  await page.getByRole('columnheader', { name: 'Name' }).waitFor();
  const { headers } = await page.evaluate(async () => ({ headers: Object.fromEntries((await fetch('/')).headers) }));
  assert.doesNotMatch(headers['content-security-policy'], /unsafe|\*|https?:/);
  const asked = evil.asked.length;
  await page.evaluate((own) => {
    const script = document.createElement('script');
    script.textContent = 'window.__owned = 1';
    document.body.append(script);
    document.body.insertAdjacentHTML('beforeend', `<img src="${own}/picture" onerror="window.__owned=2"><a id="link" href="javascript:window.__owned=3">x</a><style>body{background:url(${own}/style)}</style>`);
    document.getElementById('link').click();
    document.body.append(Object.assign(document.createElement('script'), { src: `${own}/script` }));
    document.body.append(Object.assign(document.createElement('iframe'), { src: `${own}/frame` }));
    return fetch(`${own}/fetch`).catch(() => {});
  }, evil.origin);
  await until(() => page.complaints.filter((words) => /Content Security Policy/i.test(words)).length >= 5, 'the browser refuses them');
  assert.equal(await page.evaluate(() => window.__owned), undefined);
  assert.equal(evil.asked.length, asked, 'a request left the page');
});

test('the page itself still may do what strangers may not', async () => {
  const run = await submit('sleep 300', ['--name', fresh('own')]);
  const page = await ui.show(`/runs?text=${run.slice(-8)}`);
  await rowOf(page, run).getByRole('checkbox').check();
  await page.getByRole('toolbar', { name: 'Selected runs' }).getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Abort' }).click();
  await shows(rowOf(page, run), 'cancelled');
  assert.equal((await show(run)).cluster, cluster);
});

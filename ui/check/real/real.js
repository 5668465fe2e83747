import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBrowser } from '../e2e/browser.js';
import { until as untilWithin } from '../e2e/page.js';

// The page in a browser, with the real program behind it. Who starts these tests has started
// `tow ui` in the current folder, and says in the environment where its page is:
//   TOW          the program
//   TOW_PAGE     the address that `tow ui --no-open --json` has printed, with its token
//   TOW_CLUSTER  the cluster that jobs are submitted to
//   TOW_STORE    the folder of the datastore `nas`
// Runs take a snapshot there, as they do for users: `TOW_IN_PLACE` is not set.

const { TOW, TOW_PAGE } = process.env;
export const cluster = process.env.TOW_CLUSTER ?? 'local';
export const store = process.env.TOW_STORE;
export const origin = TOW_PAGE && new URL(TOW_PAGE).origin;
/** Long enough for a cluster with a queue and a machine with little power. */
export const PATIENCE = Number(process.env.TOW_PATIENCE_MS ?? 60_000);

/** A name that no other test has. */
export const fresh = (word) => `${word}-${randomBytes(3).toString('hex')}`;

export const until = (condition, what, timeout = PATIENCE) => untilWithin(condition, what, timeout);

// What these tests are told is none of the program's business.
const OURS = ['TOW', 'TOW_PAGE', 'TOW_CLUSTER', 'TOW_STORE', 'TOW_SHOTS', 'TOW_PATIENCE_MS'];
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.includes(name)));

/** Runs the program; `{ code, stdout, stderr }`. */
export function tow(words, { env = ENVIRONMENT, cwd, encoding = 'utf8', input = '' } = {}) {
  const options = { env, cwd, encoding, maxBuffer: 64e6 };
  return new Promise((done) => {
    const child = execFile(TOW, words, options, (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

/** What it prints with `--json`. */
export async function towJson([verb, ...words], options) {
  const { code, stdout, stderr } = await tow([verb, '--json', ...words], options);
  assert.equal(code, 0, `tow ${verb} ${words.join(' ')}: ${stderr}`);
  return JSON.parse(stdout);
}

/** Submits a shell script to the cluster; the id of the run, or of the sweep. */
export async function submit(script, options = []) {
  const { code, stdout, stderr } = await tow(['submit', '-c', cluster, ...options, '--', 'sh', '-c', script]);
  assert.equal(code, 0, stderr);
  return stdout.split('\n')[0];
}

/** Submits a job file. */
export async function submitFile(text) {
  const { code, stdout, stderr } = await tow(['submit', '-c', cluster, '-f', '-'], { input: text });
  assert.equal(code, 0, stderr);
  return stdout.split('\n')[0];
}

/** The run's record; the newest run is `@`. */
export const show = (run) => towJson(['show', run]);

export async function untilState(run, state) {
  await until(async () => (await show(run)).state === state, `${run} is ${state}`, 3 * PATIENCE);
}

/** A run that has ended: `sh -c script` with these options. */
export async function ended(script, options) {
  const run = await submit(script, options);
  await untilEnded(run);
  return run;
}

export async function untilEnded(run) {
  const { code, stderr } = await tow(['wait', run, '--timeout', '3m']);
  assert.notEqual(code, 124, `${run} does not end: ${stderr}`);
}

export async function abort(...runs) {
  await tow(['abort', ...runs]);
}

/** The bytes of rank 0's log. */
export async function logOf(run, more = []) {
  return (await tow(['logs', run, ...more], { encoding: 'buffer' })).stdout;
}

/** The address of a place in the page, with the token. */
export const address = (place = '/runs', page = TOW_PAGE) => `${page.replace(/&.*$/, '')}&${place}`;

/** A browser on the real page. */
export async function start(options) {
  assert.ok(TOW && TOW_PAGE, 'TOW and TOW_PAGE say what is tested');
  const browser = await openBrowser(options);
  browser.context.setDefaultTimeout(PATIENCE);
  return {
    ...browser,
    /** A new tab at this place, in stead of the one that was shown before. */
    async show(place, page) {
      await this.page?.close();
      this.page = await browser.open(address(place, page));
      return this.page;
    },
  };
}

/** The row of a run in the table of runs. */
export const rowOf = (page, run) => page.locator('[role=table][aria-label=Runs] .line').filter({ has: page.locator(`a[title="${run}"]`) });

/** Waits for the state that a row or a head shows. */
export const shows = (place, state) => place.locator('.word').filter({ hasText: new RegExp(`^(${state})$`) }).first().waitFor({ timeout: 3 * PATIENCE });

/** Another home with a `tow ui` of its own, in which nothing has happened yet. */
export async function otherHome(config = '') {
  const root = mkdtempSync(join(tmpdir(), 'tow-real-'));
  for (const name of ['home', 'state', 'config/towline', 'project']) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, 'config/towline/config.yaml'), config);
  const env = {
    PATH: process.env.PATH,
    HOME: join(root, 'home'),
    XDG_STATE_HOME: join(root, 'state'),
    XDG_CONFIG_HOME: join(root, 'config'),
  };
  const options = { cwd: join(root, 'project'), env };
  const child = spawn(TOW, ['ui', '--no-open', '--json', '--port', '0'], { ...options, stdio: ['ignore', 'pipe', 'ignore'] });
  const said = await new Promise((done) => child.stdout.once('data', done));
  return {
    root,
    page: JSON.parse(said).address,
    tow: (words) => tow(words, options),
    async close() {
      child.kill('SIGINT');
      await new Promise((done) => child.once('exit', done));
      await tow(['daemon', 'stop'], options);
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

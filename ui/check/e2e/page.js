import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startFake } from '../fake/server.js';
import { openBrowser } from './browser.js';

const here = fileURLToPath(new URL('.', import.meta.url));
/** The built page. */
export const dist = resolve(process.env.TOW_UI_OUT ?? join(here, '../../dist'));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The built page in a browser, with a fake program behind it. */
export async function start({ browser: browserOptions, ...fakeOptions } = {}) {
  assert.ok(existsSync(join(dist, 'index.html')), `no page in ${dist}: build it first (npm run build)`);
  const fake = await startFake({ dist, ...fakeOptions });
  const browser = await openBrowser(browserOptions);
  return {
    fake,
    open: (address = '/runs') => browser.open(fake.address(address)),
    browser,
    async close() {
      await browser.close();
      await fake.close();
    },
  };
}

/** What a reader of the screen, or somebody who sees little, could not use. */
export async function violations(page) {
  // By the debugger's way, because the page's policy lets no other script in.
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations: found } = await globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return found.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')}`);
  });
}

/** Waits for a condition instead of for a time. */
export async function until(condition, what = 'the condition', timeout = 15_000) {
  const end = Date.now() + timeout;
  while (Date.now() < end) {
    if (await condition()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`${what} did not come to be`);
}

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { violations } from '../e2e/page.js';
import { abort, cluster, ended, fresh, start, store, submit, tow, untilEnded, untilState } from './real.js';

// Each main page with what really happened behind it. With TOW_SHOTS a picture of each is kept there.

const shots = process.env.TOW_SHOTS;
const seen = {};
before(async () => {
  const name = fresh('seen');
  seen.good = await ended('mkdir out; echo words > out/words.txt; for at in 1 2 3; do echo "step $at"; done', ['--name', name, '--tag', 'best', '--experiment', 'seen']);
  seen.bad = await ended('echo "RuntimeError: CUDA out of memory" >&2; exit 1', ['--name', name, '--env', 'MODE=fast']);
  seen.sweep = await submit('exit ${{code}}', ['--name', name, '--sweep', 'code=0,1,2']);
  await untilEnded(seen.sweep);
  seen.busy = await submit('i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.5; done', ['--name', name]);
  await untilState(seen.busy, 'running');
  mkdirSync(join(store, name, 'voc'), { recursive: true });
  writeFileSync(join(store, name, 'labels.txt'), 'labels\n');
  seen.folder = name;
  await tow(['tunnel', 'add', name, '--to', 'far:8888']);
  await tow(['scratch', 'create', name, '--path', join(store, name, 'voc')]);
  if (shots) mkdirSync(shots, { recursive: true });
});
after(() => abort(seen.busy));

/** The pages, with what shows that they are there. */
const PAGES = [
  ['runs', () => '/runs', '.line .name a'],
  ['run', () => `/run/${seen.bad}`, 'text=Attempts'],
  ['busy', () => `/run/${seen.busy}`, 'text=Attempts'],
  ['logs', () => `/run/${seen.busy}/logs`, '.log-lines .number'],
  ['files', () => `/run/${seen.good}/files?path=out&file=out/words.txt`, 'pre'],
  ['code', () => `/run/${seen.bad}/code?with=${seen.good}`, 'text=tow diff'],
  ['events', () => `/run/${seen.good}/events`, 'td'],
  ['plan', () => `/run/${seen.good}/plan`, 'pre'],
  ['sweep', () => `/sweep/${seen.sweep}`, 'text=Why runs failed'],
  ['compare', () => `/compare?runs=${seen.good},${seen.bad}`, 'text=tow diff'],
  ['submit', () => `/submit?from=${seen.good}`, 'text=/Ready: 1 run/'],
  ['clusters', () => '/clusters', 'article .state'],
  ['cluster', () => `/clusters/${cluster}`, 'td'],
  ['data', () => '/data', 'text=Datastores'],
  ['folder', () => `/data/nas/${seen.folder}`, 'text=labels.txt'],
  ['tunnels', () => '/tunnels', 'article'],
  ['workspaces', () => '/workspaces', 'article'],
];

const isTooWide = (page) =>
  page.evaluate(() => {
    const main = document.querySelector('main');
    return document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth;
  });

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 400]) {
    describe(`in ${colorScheme}, ${width} wide, usable by everybody`, () => {
      let ui;
      before(async () => {
        ui = await start({ colorScheme, viewport: { width, height: 800 } });
      });
      after(() => ui.close());

      for (const [name, place, sign] of PAGES) {
        test(name, async () => {
          const page = await ui.show(place());
          await page.locator(sign).first().waitFor();
          if (shots) await page.screenshot({ path: join(shots, `${name}-${colorScheme}-${width}.png`) });
          // What lies below the bar of the form can be scrolled from there.
          if (name === 'submit') await page.setViewportSize({ width, height: 3000 });
          assert.deepEqual(await violations(page), []);
          assert.deepEqual(page.complaints, []);
          assert.ok(!(await isTooWide(page)), 'the page is wider than the window');
        });
      }
    });
  }
}

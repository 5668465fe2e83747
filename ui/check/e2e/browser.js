import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A browser with a profile of its own, which is gone when it is closed. */
export async function openBrowser({ args = [], ...options } = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'tow-ui-'));
  const executablePath = process.env.CHROMIUM ?? execFileSync('sh', ['-c', 'command -v chromium']).toString().trim();
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    viewport: { width: 1280, height: 800 },
    args: [...ARGUMENTS, ...args],
    ...options,
  });
  return {
    context,
    /** A new tab that collects what the page complains of. */
    async open(address) {
      const page = await context.newPage();
      page.complaints = [];
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') page.complaints.push(message.text());
      });
      page.on('pageerror', (error) => page.complaints.push(String(error)));
      await page.goto(address);
      return page;
    },
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

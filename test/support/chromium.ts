import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';

const EXECUTABLE = process.env.GAPLESS_TEST_CHROMIUM ?? '/usr/bin/chromium';

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Why browser tests cannot run here, or undefined if they can. In CI a missing browser is no reason: there the tests
 * must run, and fail if they cannot.
 */
export function reasonToSkipBrowser(): string | undefined {
  if (existsSync(EXECUTABLE) || process.env.CI !== undefined) return undefined;
  return `no browser at ${EXECUTABLE}; name one in GAPLESS_TEST_CHROMIUM`;
}

export interface Browser {
  context: BrowserContext;
  close(): Promise<void>;
}

/** A real browser with an empty profile of its own. */
export async function startBrowser(): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'gapless-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: EXECUTABLE,
    headless: true,
    args: ARGUMENTS,
  });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

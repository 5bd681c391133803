/**
 * What a browser test needs: a broker, a network in front of it that can cut, a page of another origin, and a real
 * Chromium with an empty profile.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import { BrokerProcess } from '../support/broker-process.js';
import { type Browser, startBrowser } from '../support/chromium.js';
import { DEADLINE_MS } from '../support/deadline.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** How often the page is asked whether something has come true. */
const POLLING_MS = 20;

export interface Stage {
  readonly broker: BrokerProcess;
  /** The broker as the pages see it. */
  readonly proxy: TcpProxy;
  readonly browser: BrowserContext;
  /** A page of an origin that the broker allows, blank but for what `serve` has. */
  openPage(): Promise<Page>;
}

/** What the other origin serves beside its blank page; false: it is not there. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Sets a stage for the tests of the enclosing `describe`. When they are over the broker must end by itself, with exit
 * code 0, and must have logged no error.
 */
export function useStage({ flags, serve }: { flags: readonly string[]; serve?: Serve }): Stage {
  let origin: Server | undefined;
  let broker: BrokerProcess | undefined;
  let proxy: TcpProxy | undefined;
  let browser: Browser | undefined;

  before(async () => {
    origin = await startOrigin(serve ?? (() => false));
    broker = await BrokerProcess.start('--cors-origins', urlOf(origin), ...flags);
    proxy = await TcpProxy.start(broker.port);
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await proxy?.stop();
    origin?.close();
    origin?.closeAllConnections();
    assert.deepEqual(await broker?.stop(), { code: 0, signal: null });
    assert.deepEqual(broker?.errors, []);
  });

  return {
    get broker() {
      return isUp(broker);
    },
    get proxy() {
      return isUp(proxy);
    },
    get browser() {
      return isUp(browser).context;
    },
    async openPage() {
      const page = await this.browser.newPage();
      await page.goto(urlOf(isUp(origin)));
      return page;
    },
  };
}

/** Resolves when the expression is true in the page. */
export async function untilInPage(page: Page, expression: string): Promise<void> {
  await page.waitForFunction(expression, undefined, { timeout: DEADLINE_MS, polling: POLLING_MS });
}

function isUp<T>(part: T | undefined): T {
  assert.ok(part !== undefined, 'the stage is not set yet');
  return part;
}

async function startOrigin(serve: Serve): Promise<Server> {
  const origin = createServer((request, response) => {
    if (serve(request, response)) return;
    response
      .writeHead(200, { 'Content-Type': 'text/html' })
      .end('<!doctype html><title>a page</title><link rel="icon" href="data:,">');
  });
  origin.listen(0, '127.0.0.1');
  await once(origin, 'listening');
  return origin;
}

function urlOf(origin: Server): string {
  return `http://127.0.0.1:${(origin.address() as AddressInfo).port}`;
}

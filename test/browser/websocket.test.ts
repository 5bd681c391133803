import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { BrokerProcess } from '../support/broker-process.js';
import { type Browser, reasonToSkipBrowser, startBrowser } from '../support/chromium.js';
import { cursorOf, range } from '../support/cursor.js';
import { DEADLINE_MS } from '../support/deadline.js';
import { createStream, freshStream, publish, publishLines } from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { LiveSocket } from '../support/websocket-client.js';

/** Runs in the page: follows a stream, and comes back with the last id after each break, as an application would. */
const FOLLOW = `(url) => {
  const seen = { ids: [], data: [], opens: 0, code: 0, problem: null };
  window.seen = seen;
  let cursor = 'earliest';
  const connect = () => {
    const socket = new WebSocket(url + '?cursor=' + cursor, ['gapless.json.v1']);
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.kind === 'open') { seen.opens++; cursor = message.cursor; }
      if (message.kind === 'error') seen.problem = message;
      for (const event of message.events ?? []) {
        seen.ids.push(event.id);
        seen.data.push(event.data);
        cursor = event.id;
      }
    };
    socket.onclose = ({ code }) => {
      seen.code = code;
      if (code === 1006) setTimeout(connect, 20);
    };
    window.socket = socket;
  };
  connect();
}`;

describe('WebSocket of a browser, from a page of another origin', {
  skip: reasonToSkipBrowser() ?? false,
}, () => {
  let origin: Server;
  let broker: BrokerProcess;
  let proxy: TcpProxy;
  let browser: Browser;

  before(async () => {
    origin = createServer((_request, response) => {
      response
        .writeHead(200, { 'Content-Type': 'text/html' })
        .end('<!doctype html><title>subscriber</title>');
    });
    origin.listen(0, '127.0.0.1');
    await once(origin, 'listening');
    // A message counts when it is whole: a run is to be shorter than what a connection lives.
    const flags = ['--heartbeat-interval-ms', '50', '--write-bytes-max', '1KiB'];
    broker = await BrokerProcess.start('--cors-origins', originUrl(), ...flags);
    proxy = await TcpProxy.start(broker.port);
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await proxy?.stop();
    origin?.close();
    assert.deepEqual(await broker?.stop(), { code: 0, signal: null });
    assert.deepEqual(broker?.errors, []);
  });

  function originUrl(): string {
    return `http://127.0.0.1:${(origin.address() as AddressInfo).port}`;
  }

  async function follow(stream: string, port = proxy.port): Promise<Page> {
    const page = await browser.context.newPage();
    await page.goto(originUrl());
    await page.evaluate(`(${FOLLOW})(${JSON.stringify(`ws://127.0.0.1:${port}/v1/streams/${stream}`)})`);
    return page;
  }

  function until(page: Page, expression: string): Promise<unknown> {
    return page.waitForFunction(`(seen => ${expression})(window.seen)`, undefined, {
      timeout: DEADLINE_MS,
      polling: 20,
    });
  }

  it('resumes without a gap or duplicate when the network cuts it, again and again', async () => {
    const stream = freshStream('cut');
    const { epoch } = await publishLines(
      broker.port,
      stream,
      range(1, 50).map((seq) => `event ${seq}`),
    );
    proxy.cutAfterBytes(6_000);
    const page = await follow(stream);
    for (const seq of range(51, 300)) await publish(broker.port, stream, `event ${seq}`);
    await until(page, 'seen.ids.length >= 200 && seen.opens >= 3');
    proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    proxy.cutAll();
    await until(page, 'seen.ids.length >= 300');
    assert.deepEqual(
      await page.evaluate('window.seen.ids'),
      range(1, 300).map((seq) => cursorOf(epoch, seq)),
    );
    assert.deepEqual(
      await page.evaluate('window.seen.data'),
      range(1, 300).map((seq) => `event ${seq}`),
    );
    await page.close();
  });

  it('sees why a resume is refused, which it cannot with a 410: the problem, and close code 4410', async () => {
    const stream = freshStream('gone');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 20).map(String));
    const page = await browser.context.newPage();
    await page.goto(originUrl());
    const url = `ws://127.0.0.1:${broker.port}/v1/streams/${stream}?cursor=${cursorOf(epoch, 1)}`;
    const [code, problem] = (await page.evaluate(`new Promise((resolve) => {
      const socket = new WebSocket(${JSON.stringify(url)});
      let problem = null;
      socket.onmessage = ({ data }) => { problem = JSON.parse(data); };
      socket.onclose = ({ code }) => resolve([code, problem]);
    })`)) as [number, Record<string, unknown>];
    assert.deepEqual([code, problem.code, problem.reason], [4410, 'resume_unavailable', 'evicted']);
    await page.close();
  });

  it('stays, for it answers pings without a word of the page', async () => {
    const stream = freshStream('pings');
    const page = await follow(stream, broker.port);
    await until(page, 'seen.opens === 1');
    // One that answers none and came later has been given up by then.
    const silent = await LiveSocket.open(broker.port, stream, { answersPings: false });
    await silent.untilClosed();
    const { last } = await publish(broker.port, stream, 'still here');
    assert.equal(last, 1);
    await until(page, 'seen.ids.length === 1');
    assert.deepEqual(await page.evaluate('[window.seen.opens, window.seen.code]'), [1, 0]);
    await page.close();
  });
});

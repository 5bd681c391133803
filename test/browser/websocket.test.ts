import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { reasonToSkipBrowser } from '../support/chromium.js';
import { cursorOf, range } from '../support/cursor.js';
import { createStream, freshStream, publish, publishLines } from '../support/gapless-client.js';
import { LiveSocket } from '../support/websocket-client.js';
import { untilInPage, useStage } from './stage.js';

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
  // A message counts when it is whole: a run is to be shorter than what a connection lives.
  const stage = useStage({ flags: ['--heartbeat-interval-ms', '50', '--write-bytes-max', '1KiB'] });

  async function follow(stream: string, port = stage.proxy.port): Promise<Page> {
    const page = await stage.openPage();
    await page.evaluate(`(${FOLLOW})(${JSON.stringify(`ws://127.0.0.1:${port}/v1/streams/${stream}`)})`);
    return page;
  }

  function until(page: Page, expression: string): Promise<void> {
    return untilInPage(page, `(seen => ${expression})(window.seen)`);
  }

  it('resumes without a gap or duplicate when the network cuts it, again and again', async () => {
    const stream = freshStream('cut');
    const { epoch } = await publishLines(
      stage.broker.port,
      stream,
      range(1, 50).map((seq) => `event ${seq}`),
    );
    stage.proxy.cutAfterBytes(6_000);
    const page = await follow(stream);
    for (const seq of range(51, 300)) await publish(stage.broker.port, stream, `event ${seq}`);
    await until(page, 'seen.ids.length >= 200 && seen.opens >= 3');
    stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    stage.proxy.cutAll();
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
    await createStream(stage.broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(stage.broker.port, stream, range(1, 20).map(String));
    const page = await stage.openPage();
    const url = `ws://127.0.0.1:${stage.broker.port}/v1/streams/${stream}?cursor=${cursorOf(epoch, 1)}`;
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
    const page = await follow(stream, stage.broker.port);
    await until(page, 'seen.opens === 1');
    // One that answers none and came later has been given up by then.
    const silent = await LiveSocket.open(stage.broker.port, stream, { answersPings: false });
    await silent.untilClosed();
    const { last } = await publish(stage.broker.port, stream, 'still here');
    assert.equal(last, 1);
    await until(page, 'seen.ids.length === 1');
    assert.deepEqual(await page.evaluate('[window.seen.opens, window.seen.code]'), [1, 0]);
    await page.close();
  });
});

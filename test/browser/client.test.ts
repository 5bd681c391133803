import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { reasonToSkipBrowser } from '../support/chromium.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  closeStream,
  createStream,
  freshStream,
  type PageEvent,
  publish,
  publishLines,
  readPage,
  stateOf,
} from '../support/gapless-client.js';
import { REPOSITORY_ROOT } from '../support/paths.js';
import { type Serve, untilInPage, useStage } from './stage.js';

const DIST = join(REPOSITORY_ROOT, 'dist');

/** The package as it was built, where a bundler would take it from. */
const serveDist: Serve = ({ url = '' }, response) => {
  if (!url.startsWith('/dist/')) return false;
  const file = normalize(join(DIST, url.slice('/dist/'.length)));
  assert.ok(file.startsWith(DIST));
  response.writeHead(200, { 'Content-Type': 'text/javascript' }).end(readFileSync(file));
  return true;
};

/** Runs in the page: the client, and a list of what each subscription has been given. */
const SET_UP = `async (url) => {
  const gapless = await import('/dist/client/client.js');
  const client = new gapless.GaplessClient({ url });
  const follow = (stream, options) => {
    const seen = { events: [], connections: 0, breaks: 0, end: null, error: null };
    const ending = new AbortController();
    const onStatus = ({ state }) => {
      if (state === 'open') seen.connections++;
      if (state === 'waiting') seen.breaks++;
    };
    const read = async () => {
      const subscription = client.subscribe(stream, { retryMs: 20, signal: ending.signal, onStatus, ...options });
      for await (const { id, type, data } of subscription) seen.events.push({ id, type, data });
      seen.end = 'closed';
    };
    read().catch((error) => {
      const { code, reason, cursor, epoch, floor, head, earliest } = error;
      const isRefusal = error instanceof gapless.ResumeUnavailableError;
      seen.error = { name: error.name, isRefusal, code, reason, cursor, epoch, floor, head, earliest };
    });
    return { seen, stop: () => ending.abort() };
  };
  Object.assign(window, { gapless, client, follow });
}`;

interface Seen {
  events: { id: string; type: string; data: string }[];
  connections: number;
  breaks: number;
  end: string | null;
  error: Record<string, unknown> | null;
}

describe('gapless/client in a browser, in a page of another origin', {
  skip: reasonToSkipBrowser() ?? false,
}, () => {
  const stage = useStage({ flags: ['--retry-ms', '50'], serve: serveDist });

  afterEach(() => stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY));

  async function openPage(): Promise<Page> {
    const page = await stage.openPage();
    await page.evaluate(`(${SET_UP})('http://127.0.0.1:${stage.proxy.port}')`);
    return page;
  }

  function follow(page: Page, stream: string, options: object = {}): Promise<void> {
    const argument = `${JSON.stringify(stream)}, ${JSON.stringify(options)}`;
    return page.evaluate(`void (window.following = follow(${argument}))`);
  }

  async function until(page: Page, expression: string): Promise<Seen> {
    await untilInPage(page, `(seen => ${expression})(window.following.seen)`);
    return (await page.evaluate('window.following.seen')) as Seen;
  }

  it('gives each event once and in order, when the network cuts it at several places', async () => {
    const stream = freshStream('cut');
    const { epoch } = await publishLines(
      stage.broker.port,
      stream,
      range(1, 60).map((seq) => `event ${seq}`),
    );
    const page = await openPage();
    stage.proxy.cutAfterBytes(1_600);
    await follow(page, stream, { cursor: 'earliest' });
    for (const bytes of [1_601, 1_627, 1_633, 1_650]) {
      const { connections } = await until(page, 'seen.connections >= 1');
      stage.proxy.cutAfterBytes(bytes);
      for (const _ of range(1, 15)) {
        const { head } = await stateOf(stage.broker.port, stream);
        await publish(stage.broker.port, stream, `event ${head + 1}`);
      }
      stage.proxy.cutAll();
      await until(page, `seen.connections > ${connections}`);
    }
    stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    stage.proxy.cutAll();
    await publish(stage.broker.port, stream, 'event 121');
    await closeStream(stage.broker.port, stream);
    const { events, breaks } = await until(page, 'seen.end === "closed"');
    assert.deepEqual(
      events.map(({ id, data }) => [id, data]),
      range(1, 121).map((seq) => [cursorOf(epoch, seq), `event ${seq}`]),
    );
    assert.ok(breaks >= 5, `${breaks} breaks`);
    await page.close();
  });

  it('publishes once, although the network takes the answer away', async () => {
    const stream = freshStream('once');
    await createStream(stage.broker.port, stream);
    const page = await openPage();
    // With the same headers, so that the browser has asked whether it may (CORS).
    await page.evaluate(`client.publish(${JSON.stringify(stream)}, 'first', { type: 'tick' })`);
    const before = stage.proxy.requestHeads.length;
    // The request goes through, and not a byte of what the broker says.
    stage.proxy.cutAfterBytes(0);
    stage.proxy.cutAll();
    await page.evaluate(
      `void (window.published = client.publish(${JSON.stringify(stream)}, 'second', { type: 'tick' }))`,
    );
    const posts = () => stage.proxy.requestHeads.slice(before).filter((head) => head.startsWith('POST'));
    await eventually('the page to publish', () => posts().length > 0);
    stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    const published = (await page.evaluate('window.published')) as { last: number };
    assert.equal(published.last, 2);
    const { events } = (await readPage(stage.broker.port, stream)).json<{ events: PageEvent[] }>();
    assert.deepEqual(
      events.map(({ type, data }) => [type, data]),
      [
        ['tick', 'first'],
        ['tick', 'second'],
      ],
    );
    assert.ok(posts().length >= 2, 'it was sent again');
    await page.close();
  });

  it('throws a refusal as an error of its type, with where the stream stands', async () => {
    const stream = freshStream('refused');
    await createStream(stage.broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(stage.broker.port, stream, range(1, 20).map(String));
    const { floor, head } = await stateOf(stage.broker.port, stream);
    const page = await openPage();
    await follow(page, stream, { cursor: cursorOf(epoch, 1) });
    const { error, events } = await until(page, 'seen.error !== null');
    assert.deepEqual(events, []);
    assert.deepEqual(error, {
      name: 'ResumeUnavailableError',
      isRefusal: true,
      code: 'resume_unavailable',
      reason: 'evicted',
      cursor: cursorOf(epoch, 1),
      epoch,
      floor,
      head,
      earliest: cursorOf(epoch, floor - 1),
    });
    await follow(page, stream, { cursor: error?.earliest });
    const again = await until(page, `seen.events.length === ${head - floor + 1}`);
    assert.equal(again.events[0]?.id, cursorOf(epoch, floor));
    await page.close();
  });

  it('lets go of its connection when the program has enough', async () => {
    const stream = freshStream('stopped');
    const page = await openPage();
    await follow(page, stream);
    await until(page, 'seen.connections === 1');
    await page.evaluate('window.following.stop()');
    const { error } = await until(page, 'seen.error !== null');
    assert.equal(error?.name, 'AbortError');
    await eventually('the broker to have no reader', async () => {
      return (await stateOf(stage.broker.port, stream)).subscribers === 0;
    });
    await page.close();
  });

  it('follows and publishes to sixteen streams over one connection, where six would have been too few, over cuts', async () => {
    const streams = range(1, 16).map((index) => freshStream(`many-${index}`));
    const names = JSON.stringify(streams);
    const page = await openPage();
    const before = stage.proxy.requestHeads.length;
    await page.evaluate(`(() => {
      window.seen = [];
      window.opens = 0;
      const onStatus = ({ state }) => { if (state === 'open') window.opens++; };
      const events = client.subscribeMany(${names}, { cursor: 'earliest', retryMs: 20, onStatus });
      void (async () => {
        for await (const { stream, data } of events) window.seen.push([stream, data]);
      })();
    })()`);
    for (const round of range(1, 3)) {
      await untilInPage(page, `window.opens === ${round}`);
      const publishing = `${names}.map((name) => client.publish(name, 'in round ${round}'))`;
      await page.evaluate(`Promise.all(${publishing}).then(() => undefined)`);
      await untilInPage(page, `window.seen.length === ${16 * round}`);
      stage.proxy.cutAll();
    }
    const seen = (await page.evaluate('window.seen')) as [string, string][];
    for (const stream of streams) {
      const data = seen.filter(([name]) => name === stream).map(([, text]) => text);
      assert.deepEqual(data, ['in round 1', 'in round 2', 'in round 3']);
    }
    const subscriptions = stage.proxy.requestHeads
      .slice(before)
      .filter((head) => head.startsWith('GET ') && /^accept: text\/event-stream/im.test(head));
    assert.ok(subscriptions.length <= 4, 'one at a time');
    await page.close();
  });

  it('reads the tokens of a model from their start in any number of tabs, while they are still coming', async () => {
    const stream = freshStream('tokens');
    const writer = await openPage();
    await writer.evaluate(`(() => {
      window.more = () => {};
      async function* tokens() {
        for (const token of ['Once', ' upon', ' a']) yield token;
        await new Promise((resolve) => { window.more = resolve; });
        yield* [' time', '.'];
      }
      window.published = gapless.publishTokens(client, ${JSON.stringify(stream)}, tokens());
    })()`);
    const tabs = [await openPage(), await openPage()];
    for (const tab of tabs) {
      await tab.evaluate(`(() => {
        window.text = '';
        window.done = (async () => {
          for await (const token of gapless.readTokens(client, ${JSON.stringify(stream)})) window.text += token;
        })();
      })()`);
      await untilInPage(tab, 'window.text === "Once upon a"');
    }
    await writer.evaluate('window.more()');
    for (const tab of tabs) {
      await tab.evaluate('window.done');
      assert.equal(await tab.evaluate('window.text'), 'Once upon a time.');
      await tab.close();
    }
    await writer.evaluate('window.published');
    await writer.close();
  });
});

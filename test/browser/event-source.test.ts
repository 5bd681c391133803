import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { reasonToSkipBrowser } from '../support/chromium.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  closeStream,
  createStream,
  freshStream,
  type Problem,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { untilInPage, useStage } from './stage.js';

/** What the page collects about one EventSource. */
interface Seen {
  events: { type: string; data: string; id: string }[];
  opens: number;
  errors: number;
  readyState: number;
}

const CLOSED = 2;

/** Runs in the page: follows a URL and puts what it sees into `window.seen`. */
const FOLLOW = `(url) => {
  const source = new EventSource(url);
  const seen = { events: [], opens: 0, errors: 0, readyState: 0 };
  const record = (event) => seen.events.push({ type: event.type, data: event.data, id: event.lastEventId });
  for (const type of ['message', 'typed', 'resume_unavailable', 'stream_closed']) source.addEventListener(type, record);
  source.onopen = () => seen.opens++;
  source.onerror = () => seen.errors++;
  Object.defineProperty(seen, 'readyState', { get: () => source.readyState, enumerable: true });
  window.seen = seen;
  window.source = source;
}`;

describe('EventSource of a browser, from a page of another origin', {
  skip: reasonToSkipBrowser() ?? false,
}, () => {
  const stage = useStage({ flags: ['--retry-ms', '50'] });

  function follow(stream: string, query = ''): Promise<Page> {
    return followPath(`/v1/streams/${stream}${query}`);
  }

  async function followPath(path: string): Promise<Page> {
    const page = await stage.openPage();
    await page.evaluate(`(${FOLLOW})(${JSON.stringify(`http://127.0.0.1:${stage.proxy.port}${path}`)})`);
    return page;
  }

  /** Waits in the page until the expression, about `seen`, is true; returns what was seen by then. */
  async function until(page: Page, expression: string): Promise<Seen> {
    await untilInPage(page, `(seen => ${expression})(window.seen)`);
    return (await page.evaluate('JSON.parse(JSON.stringify(window.seen))')) as Seen;
  }

  function seqs(seen: Seen, epoch: string): number[] {
    return seen.events.map(({ id }) => {
      assert.ok(id.startsWith(`${epoch}.`), id);
      return Number(id.slice(epoch.length + 1));
    });
  }

  it('resumes without a gap or duplicate when the network cuts it, again and again, in the middle of frames', async () => {
    const stream = freshStream('cut');
    const { epoch } = await publishLines(
      stage.broker.port,
      stream,
      range(1, 50).map((seq) => `event ${seq}`),
    );
    stage.proxy.cutAfterBytes(1_777);
    const page = await follow(stream, '?cursor=earliest');
    for (const seq of range(51, 120)) await publish(stage.broker.port, stream, `event ${seq}`);
    await until(page, 'seen.events.length >= 100 && seen.opens >= 3');
    stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    stage.proxy.cutAll();
    await publish(stage.broker.port, stream, 'event 121');
    const seen = await until(page, 'seen.events.some(event => event.data === "event 121")');
    assert.deepEqual(seqs(seen, epoch), range(1, 121));
    assert.deepEqual(
      seen.events.map(({ data }) => data),
      range(1, 121).map((seq) => `event ${seq}`),
    );
    assert.ok(seen.opens >= 4 && seen.errors >= 3, `${seen.opens} opens, ${seen.errors} errors`);
    await page.close();
  });

  for (const [what, queryOf] of [
    ['several streams', (streams) => streams.map((name) => `stream=${name}`).join('&')],
    ['all streams of a prefix', ([first = '']) => `prefix=${first.slice(0, -1)}`],
  ] satisfies [string, (streams: readonly string[]) => string][]) {
    it(`follows ${what} over one connection, and resumes all of them by its one id, without a preflight`, async () => {
      const prefix = freshStream('several');
      const streams = range(1, 5).map((index) => `${prefix}-${index}`);
      for (const stream of streams) await publish(stage.broker.port, stream, `${stream} 1`);
      stage.proxy.cutAfterBytes(2_500);
      const before = stage.proxy.requestHeads.length;
      const page = await followPath(`/v1/streams?cursor=earliest&${queryOf(streams)}`);
      for (const seq of range(2, 20)) {
        for (const stream of streams) await publish(stage.broker.port, stream, `${stream} ${seq}`);
      }
      await until(page, 'seen.events.length >= 70 && seen.opens >= 3');
      stage.proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
      stage.proxy.cutAll();
      const { events } = await until(page, 'seen.events.length >= 100');
      const seen = events.map(({ data }) => JSON.parse(data) as { stream: string; data: string });
      for (const stream of streams) {
        const data = seen.filter((event) => event.stream === stream).map((event) => event.data);
        assert.deepEqual(
          data,
          range(1, 20).map((seq) => `${stream} ${seq}`),
        );
      }
      const heads = stage.proxy.requestHeads.slice(before);
      assert.ok(heads.length >= 4 && heads.every((head) => head.startsWith('GET ')), 'no OPTIONS');
      await page.close();
    });
  }

  it('a live subscriber that was cut before its first event misses nothing: the priming frame gave it an id', async () => {
    const stream = freshStream('primed');
    const { epoch } = await publish(stage.broker.port, stream, 'before');
    const page = await follow(stream);
    // Nothing in a page shows that the frame was read, but what the browser asks for when it comes back does.
    const hasId = () =>
      stage.proxy.requestHeads.some((head) => head.includes(`Last-Event-ID: ${cursorOf(epoch, 1)}`));
    for (let opens = 1; !hasId(); opens++) {
      await until(page, `seen.opens >= ${opens}`);
      stage.proxy.cutAll();
    }
    stage.proxy.cutAll();
    await publishLines(stage.broker.port, stream, ['while away', 'and more']);
    const seen = await until(page, 'seen.events.length >= 2');
    assert.deepEqual(seqs(seen, epoch), [2, 3]);
    await page.close();
  });

  it('sees a 410 as one error that is final: readyState 2 and no event', async () => {
    const stream = freshStream('gone');
    await createStream(stage.broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(stage.broker.port, stream, range(1, 20).map(String));
    const page = await follow(stream, `?cursor=${cursorOf(epoch, 1)}`);
    const seen = await until(page, `seen.readyState === ${CLOSED}`);
    assert.deepEqual([seen.events.length, seen.opens, seen.errors], [0, 0, 1]);
    await page.close();
  });

  it('with on_unavailable=event gets floor and head, and then carries on from the head without a hole', async () => {
    const stream = freshStream('as-event');
    await createStream(stage.broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(stage.broker.port, stream, range(1, 20).map(String));
    const state = await stateOf(stage.broker.port, stream);
    const page = await follow(stream, `?cursor=${cursorOf(epoch, 1)}&on_unavailable=event`);
    await until(page, 'seen.events.length >= 1 && seen.opens >= 2');
    await publish(stage.broker.port, stream, 'event 21');
    await publish(stage.broker.port, stream, 'event 22');
    const { events } = await until(page, 'seen.events.some(event => event.data === "event 22")');
    assert.deepEqual(
      events.map(({ type }) => type),
      ['resume_unavailable', 'message', 'message'],
    );
    const problem = JSON.parse(events[0]?.data ?? '') as Problem;
    assert.deepEqual([problem.reason, problem.floor, problem.head], ['evicted', state.floor, state.head]);
    assert.deepEqual(
      events.map(({ id }) => id),
      [20, 21, 22].map((seq) => cursorOf(epoch, seq)),
    );
    await page.close();
  });

  it('stops for good after stream_closed: it comes back once, is told 204 and stays away', async () => {
    const stream = freshStream('closed');
    await publishLines(stage.broker.port, stream, ['one', 'two']);
    const page = await follow(stream, '?cursor=earliest');
    await until(page, 'seen.events.length === 2');
    await closeStream(stage.broker.port, stream);
    const { events } = await until(page, `seen.readyState === ${CLOSED}`);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['message', 'message', 'stream_closed'],
    );
    await page.close();
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unpack } from 'msgpackr';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  assertProblem,
  closeStream,
  createStream,
  freshStream,
  MEDIA_TYPES,
  type Page,
  type PageEvent,
  publish,
  publishLines,
  readAll,
  readPage,
  stateOf,
} from '../support/gapless-client.js';

describeOnEdges('6 read a page', [], (broker) => {
  async function pageOf(stream: string, query = ''): Promise<Page> {
    const response = await readPage(broker.port, stream, query);
    assert.equal(response.status, 200, response.text);
    assert.match(response.header('content-type') ?? '', /^application\/json(;|$)/);
    return response.json<Page>();
  }

  it('6 without a cursor it begins with the earliest event', async () => {
    const stream = freshStream('earliest');
    const { epoch } = await publish(broker.port, stream, 'one', MEDIA_TYPES.text, {
      'Gapless-Event': 'typed',
    });
    await publish(broker.port, stream, 'two\nlines');
    assert.deepEqual(await pageOf(stream), {
      events: [
        { id: cursorOf(epoch, 1), type: 'typed', data: 'one' },
        { id: cursorOf(epoch, 2), type: 'message', data: 'two\nlines' },
      ],
      next: cursorOf(epoch, 2),
      upToDate: true,
      closed: false,
    });
  });

  it('6 from every cursor, with every limit, the pages join without gap or duplicate', async () => {
    const stream = freshStream('walk');
    const { epoch } = await publishLines(
      broker.port,
      stream,
      range(1, 23).map((seq) => `event ${seq}`),
    );
    for (const limit of [1, 2, 5, 22, 23, 24]) {
      for (const start of [0, 1, 11, 22]) {
        const events: PageEvent[] = [];
        let next = cursorOf(epoch, start);
        for (let upToDate = false; !upToDate; ) {
          const page = await pageOf(stream, `cursor=${next}&limit=${limit}`);
          assert.ok(page.events.length > 0 && page.events.length <= limit);
          assert.equal(page.next, page.events.at(-1)?.id);
          events.push(...page.events);
          ({ next, upToDate } = page);
        }
        assert.deepEqual(
          events.map(({ id }) => id),
          range(start + 1, 23).map((seq) => cursorOf(epoch, seq)),
        );
      }
    }
  });

  it('6 upToDate says whether something is left to read now', async () => {
    const stream = freshStream('up-to-date');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two', 'three']);
    assert.equal((await pageOf(stream, 'limit=2')).upToDate, false);
    assert.equal((await pageOf(stream, 'limit=3')).upToDate, true);
    const atHead = await pageOf(stream, `cursor=${cursorOf(epoch, 3)}`);
    assert.deepEqual(atHead, { events: [], next: cursorOf(epoch, 3), upToDate: true, closed: false });
  });

  it('6 `earliest` and `latest` are cursors here too', async () => {
    const stream = freshStream('words');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    assert.equal((await pageOf(stream, 'cursor=earliest')).events.length, 2);
    const latest = await pageOf(stream, 'cursor=latest');
    assert.deepEqual([latest.events, latest.next], [[], cursorOf(epoch, 2)]);
  });

  it('6 an empty stream has an empty page whose `next` is before the first event', async () => {
    const stream = freshStream('empty');
    await createStream(broker.port, stream);
    const { epoch } = await stateOf(broker.port, stream);
    assert.deepEqual(await pageOf(stream), {
      events: [],
      next: cursorOf(epoch, 0),
      upToDate: true,
      closed: false,
    });
  });

  it('6 the last page of a closed stream says closed; an earlier one does not hide what is left', async () => {
    const stream = freshStream('closed');
    await publishLines(broker.port, stream, ['one', 'two']);
    await closeStream(broker.port, stream);
    const last = await pageOf(stream);
    assert.deepEqual([last.events.length, last.upToDate, last.closed], [2, true, true]);
    assert.equal((await pageOf(stream, 'limit=1')).upToDate, false);
  });

  it('6 application/x-ndjson has one event a line and the rest in headers', async () => {
    const stream = freshStream('ndjson');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two', 'three']);
    const response = await readPage(broker.port, stream, 'limit=2', MEDIA_TYPES.ndjson);
    assert.equal(response.status, 200);
    assert.match(response.header('content-type') ?? '', /^application\/x-ndjson(;|$)/);
    assert.equal(response.header('gapless-next'), cursorOf(epoch, 2));
    assert.equal(response.header('gapless-up-to-date'), 'false');
    assert.equal(response.header('gapless-closed'), 'false');
    assert.ok(response.text.endsWith('\n'));
    const events = response.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as PageEvent);
    assert.deepEqual(events, [
      { id: cursorOf(epoch, 1), type: 'message', data: 'one' },
      { id: cursorOf(epoch, 2), type: 'message', data: 'two' },
    ]);
    const rest = await readPage(
      broker.port,
      stream,
      `cursor=${response.header('gapless-next')}`,
      MEDIA_TYPES.ndjson,
    );
    assert.equal(rest.header('gapless-up-to-date'), 'true');
  });

  it('6 application/msgpack is the same page, with binary events as bytes', async () => {
    const stream = freshStream('msgpack');
    const { epoch } = await publish(broker.port, stream, 'text');
    await publish(broker.port, stream, Buffer.from([0, 1, 255]), MEDIA_TYPES.binary);
    const response = await readPage(broker.port, stream, '', MEDIA_TYPES.msgpack);
    assert.match(response.header('content-type') ?? '', /^application\/msgpack(;|$)/);
    assert.deepEqual(unpack(response.body), {
      events: [
        { id: cursorOf(epoch, 1), type: 'message', data: 'text' },
        { id: cursorOf(epoch, 2), type: 'message', data: Buffer.from([0, 1, 255]) },
      ],
      next: cursorOf(epoch, 2),
      upToDate: true,
      closed: false,
    });
  });

  it('6 data with any character is the same in SSE and on a page', async () => {
    const stream = freshStream('characters');
    const data = `quotes " and \\ and / ${String.fromCodePoint(...range(1, 0x9f))} ${'𝄞é\u2028'} "}]`;
    await publish(broker.port, stream, data);
    assert.deepEqual(
      (await readAll(broker.port, stream)).map((event) => event.data),
      [data.replace('\r', '\n')],
    );
  });

  it('6 a refusal is as in 4.4: 410, or 400 for what is no cursor', async () => {
    const stream = freshStream('refusal');
    const { epoch } = await publish(broker.port, stream, 'one');
    for (const accept of [MEDIA_TYPES.json, MEDIA_TYPES.ndjson, MEDIA_TYPES.msgpack]) {
      const ahead = await readPage(broker.port, stream, `cursor=${cursorOf(epoch, 2)}`, accept);
      assert.equal(assertProblem(ahead, 410, 'resume_unavailable').reason, 'ahead_of_head');
      assert.equal(ahead.header('cache-control'), 'no-store');
      assertProblem(await readPage(broker.port, stream, 'cursor=', accept), 400, 'malformed');
      assertProblem(await readPage(broker.port, stream, 'cursor=nonsense', accept), 400, 'malformed');
    }
  });

  it('6 reading a page of a stream that does not exist creates nothing', async () => {
    const stream = freshStream('absent');
    assertProblem(await readPage(broker.port, stream), 404, 'stream_not_found');
    const withCursor = await readPage(broker.port, stream, 'cursor=zzzzzzzzzz.4');
    const { reason, epoch } = assertProblem(withCursor, 410, 'resume_unavailable');
    assert.deepEqual([reason, epoch], ['epoch_changed', null]);
    assertProblem(await readPage(broker.port, stream), 404, 'stream_not_found');
  });

  it('6 a limit or wait that is none is 400 invalid_query', async () => {
    const stream = freshStream('query');
    await publish(broker.port, stream, 'one');
    for (const query of [
      'limit=0',
      'limit=-1',
      'limit=x',
      'limit=',
      'limit=1.5',
      'wait=-1',
      'wait=x',
      'wait=',
      'wait=NaN',
    ]) {
      assertProblem(await readPage(broker.port, stream, query), 400, 'invalid_query');
    }
  });

  it('6 with `wait` the answer comes when the event does', async () => {
    const stream = freshStream('poll');
    const { epoch } = await publish(broker.port, stream, 'one');
    const polls = range(1, 12).map(() => pageOf(stream, `cursor=${cursorOf(epoch, 1)}&wait=20`));
    await publish(broker.port, stream, 'two');
    for (const page of await Promise.all(polls)) {
      assert.deepEqual(page.events, [{ id: cursorOf(epoch, 2), type: 'message', data: 'two' }]);
      assert.equal(page.upToDate, true);
    }
  });

  it('6 with `wait` what is there already comes at once, and an empty wait ends with an empty page', async () => {
    const stream = freshStream('no-wait');
    const { epoch } = await publish(broker.port, stream, 'one');
    assert.equal((await pageOf(stream, 'wait=20')).events.length, 1);
    const nothing = await pageOf(stream, `cursor=${cursorOf(epoch, 1)}&wait=1`);
    assert.deepEqual(nothing, { events: [], next: cursorOf(epoch, 1), upToDate: true, closed: false });
  });

  it('6 a waiting reader is answered when the stream closes, and at once when it is closed', async () => {
    const stream = freshStream('poll-closed');
    const { epoch } = await publish(broker.port, stream, 'one');
    const poll = pageOf(stream, `cursor=${cursorOf(epoch, 1)}&wait=20`);
    await closeStream(broker.port, stream);
    const expected = { events: [], next: cursorOf(epoch, 1), upToDate: true, closed: true };
    assert.deepEqual(await poll, expected);
    assert.deepEqual(await pageOf(stream, `cursor=${cursorOf(epoch, 1)}&wait=20`), expected);
  });

  it('6 a reader that polls from page to page while others publish gets each event once', async () => {
    const stream = freshStream('poll-chain');
    await createStream(broker.port, stream);
    const published = (async () => {
      for (const seq of range(1, 200)) await publish(broker.port, stream, `event ${seq}`);
    })();
    const data: string[] = [];
    let next = 'earliest';
    while (data.length < 200) {
      const page = await pageOf(stream, `cursor=${next}&wait=20&limit=7`);
      data.push(...page.events.map((event) => event.data));
      next = page.next;
    }
    await published;
    assert.deepEqual(
      data,
      range(1, 200).map((seq) => `event ${seq}`),
    );
  });
});

describe('6 pages have bounds of their own', () => {
  const broker = useBroker('--page-bytes-max', '4KiB', '--page-events-max', '10');

  it('6 no page has more events than the bound, whatever the limit says', async () => {
    const stream = freshStream('events');
    await publishLines(broker.port, stream, range(1, 35).map(String));
    const { events, upToDate } = (await readPage(broker.port, stream)).json<Page>();
    assert.deepEqual([events.length, upToDate], [10, false]);
    assert.equal((await readAll(broker.port, stream)).length, 35);
  });

  it('6 an event larger than a page comes alone, and the next after it', async () => {
    const stream = freshStream('bytes');
    const sizes = [10, 3_000, 3_000, 50_000, 10, 10, 50_000, 50_000, 10];
    for (const size of sizes) await publish(broker.port, stream, 'x'.repeat(size));
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ data }) => data.length),
      sizes,
    );
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
import {
  createStream,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishRequest,
  readAll,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { answeredOf, producerRequest } from '../support/producer.js';
import { scrape, total } from '../support/prometheus.js';
import { type LiveMessage, LiveSocket } from '../support/websocket-client.js';

const PROTOCOLS = ['gapless.json.v1', 'gapless.msgpack.v1'];
const event = (data: unknown): { data: unknown } => ({ data });

const LIMITS = ['--event-bytes-max', '1000', '--batch-events-max', '100', '--body-bytes-max', '64KiB'];

describeOnEdges('5.5 publishing over a WebSocket', LIMITS, (broker) => {
  it('5.5 a message is appended as a whole, answered, and given to all who read', async () => {
    for (const protocol of PROTOCOLS) {
      const stream = freshStream('appended');
      const socket = await LiveSocket.open(broker.port, stream, { protocols: [protocol] });
      const events = [
        event('text'),
        { type: 'tick', data: { a: [1, null] } },
        event(''),
        event('two\r\nlines'),
      ];
      const { epoch } = socket.ofKind('open')[0] as LiveMessage;
      assert.deepEqual(await socket.publish({ events }), {
        kind: 'published',
        cursor: cursorOf(String(epoch), 4),
        epoch,
        first: 1,
        last: 4,
        ref: 'publish 1',
      });
      await socket.untilSeq(4);
      assert.deepEqual(socket.data, ['text', '{"a":[1,null]}', '', 'two\nlines']);
      assert.deepEqual(
        (await readAll(broker.port, stream)).map(({ type, data }) => [type, data]),
        [
          ['message', 'text'],
          ['tick', '{"a":[1,null]}'],
          ['message', ''],
          ['message', 'two\nlines'],
        ],
      );
      socket.cut();
    }
  });

  it('5.5 bytes are a binary event in MessagePack', async () => {
    const stream = freshStream('binary');
    const socket = await LiveSocket.open(broker.port, stream, { protocols: ['gapless.msgpack.v1'] });
    await socket.publish({ events: [event(Buffer.from([0, 255]))] });
    const [binary] = await readAll(broker.port, stream);
    assert.deepEqual([binary?.data, binary?.encoding], ['AP8=', 'base64']);
    socket.cut();
  });

  it('5.5 what is said before the subscription has begun is appended after that, in order, and not without bound', async () => {
    const stream = freshStream('at-once');
    const atOnce = range(1, 20).map((n) => ({ kind: 'publish', ref: n, events: [event(`event ${n}`)] }));
    const socket = LiveSocket.connect(broker.port, stream, { atOnce });
    await socket.untilAnswered(20);
    assert.deepEqual(
      socket.ofKind('published').map(({ ref, last }) => [ref, last]),
      range(1, 20).map((n) => [n, n]),
    );
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ data }) => data),
      range(1, 20).map((n) => `event ${n}`),
    );
    socket.cut();
    const large = range(1, 4).map((ref) => ({
      kind: 'publish',
      ref,
      events: range(1, 40).map(() => event('x'.repeat(1000))),
    }));
    const greedy = LiveSocket.connect(broker.port, freshStream('greedy'), { atOnce: large });
    await greedy.untilAnswered(1);
    assert.ok(greedy.ofKind('error').every(({ code }) => code === 'too_many_messages'));
    greedy.cut();
  });

  it('5.5 what is wrong is answered as by POST, and the connection goes on', async () => {
    const stream = freshStream('refused');
    await publish(broker.port, stream, 'one');
    const socket = await LiveSocket.open(broker.port, stream);
    const batch = 'application/vnd.gapless.batch+json';
    for (const [events, headers, members] of [
      [[], {}, {}],
      [[{ type: 'tick' }], {}, {}],
      [[{ data: '', type: 'a\nb' }], {}, {}],
      [[{ data: '', type: 'stream_closed' }], {}, {}],
      [[event('\ud800')], {}, {}],
      [[event('x'.repeat(1001))], {}, {}],
      [range(1, 101).map(() => event('')), {}, {}],
      [{ data: 'x' }, {}, {}],
      [[event('')], { 'Gapless-If-Head': 'zzzzzzzzzz.7' }, { ifHead: 'zzzzzzzzzz.7' }],
      [[event('')], { 'Gapless-If-Head': 'x' }, { ifHead: 'x' }],
      [
        [event('')],
        { 'Producer-Id': 'a', 'Producer-Epoch': '0', 'Producer-Seq': '3' },
        { producerId: 'a', producerEpoch: 0, producerSeq: 3 },
      ],
      [[event('')], { 'Producer-Id': 'a' }, { producerId: 'a' }],
      [
        [event('')],
        { 'Producer-Id': 'a', 'Producer-Epoch': '0', 'Producer-Seq': '0', 'Idempotency-Key': 'k' },
        { producerId: 'a', producerEpoch: 0, producerSeq: 0, idempotencyKey: 'k' },
      ],
    ] as const) {
      const answer = await socket.publish({ events, ...members });
      const posted = await request(
        broker.port,
        publishRequest(stream, JSON.stringify(events), batch, headers),
      );
      const { kind, ref, request: number, detail, ...problem } = answer;
      const { detail: postedDetail, ...expected } = posted.json<Record<string, unknown>>();
      assert.deepEqual([kind, problem], ['error', expected]);
      assert.equal(typeof number, 'string');
    }
    assert.equal((await socket.publish({ events: [event('on')] })).last, 2);
    socket.cut();
  });

  it('5.5 a message without events, of no kind, or with members of a wrong type is refused, with its ref', async () => {
    const socket = await LiveSocket.open(broker.port, freshStream('shapes'));
    for (const [message, code] of [
      [{ kind: 'publish' }, 'invalid_body'],
      [{ kind: 'publish', events: null }, 'invalid_body'],
      [{ kind: 'shout', events: [] }, 'invalid_body'],
      [{ events: [] }, 'invalid_body'],
      [{ kind: 'publish', events: [event('')], ifHead: 7 }, 'malformed'],
      [{ kind: 'publish', events: [event('')], ifHead: '' }, 'malformed'],
      [{ kind: 'publish', events: [event('')], idempotencyKey: '' }, 'invalid_producer'],
      [
        { kind: 'publish', events: [event('')], producerId: 'a', producerEpoch: '0', producerSeq: 0 },
        'invalid_producer',
      ],
      [
        { kind: 'publish', events: [event('')], producerId: 'a', producerEpoch: 0, producerSeq: 0.5 },
        'invalid_producer',
      ],
    ] as const) {
      socket.sayMap({ ref: 'r', ...message });
      await socket.until('the answer', () => socket.ofKind('error').at(-1)?.ref === 'r');
      assert.equal(socket.ofKind('error').at(-1)?.code, code, JSON.stringify(message));
      socket.messages.length = 0;
    }
    socket.cut();
  });

  it('5.5 a repeat is known whichever way it comes, and so is who was fenced', async () => {
    const stream = freshStream('producers');
    const socket = await LiveSocket.open(broker.port, stream);
    const say = (producerSeq: number, producerEpoch = 1): Promise<LiveMessage> =>
      socket.publish({ events: [event('x')], producerId: 'a', producerEpoch, producerSeq });
    const post = (seq: number, epoch = 1) =>
      request(broker.port, producerRequest({ stream, id: 'a', epoch, seq, lines: ['x'] }));
    assert.equal((await say(0)).duplicate, undefined);
    assert.deepEqual(answeredOf(await post(0)).isDuplicate, true);
    assert.equal(answeredOf(await post(1)).isDuplicate, false);
    const repeated = await say(1);
    assert.deepEqual([repeated.kind, repeated.duplicate, repeated.last], ['published', true, 2]);
    const gap = await say(5);
    assert.deepEqual([gap.code, gap.expected], ['producer_gap', 2]);
    await post(0, 2);
    const fenced = await say(2);
    assert.deepEqual([fenced.code, fenced.producerEpoch], ['producer_fenced', 2]);
    const keyed = { events: [event('keyed')], idempotencyKey: 'k' };
    const first = await socket.publish(keyed);
    const again = await socket.publish(keyed);
    assert.deepEqual([again.duplicate, again.cursor], [true, first.cursor]);
    assert.equal((await readAll(broker.port, stream)).length, 4);
    socket.cut();
  });

  it('5.5 at the head that is named, or not at all', async () => {
    const stream = freshStream('if-head');
    const { epoch } = await publish(broker.port, stream, 'one');
    const cursor = cursorOf(epoch, 1);
    const socket = await LiveSocket.open(broker.port, stream);
    const { cursor: head } = await socket.publish({ events: [event('two')], ifHead: cursor });
    const refused = await socket.publish({ events: [event('two')], ifHead: cursor });
    assert.deepEqual([refused.code, refused.head], ['head_mismatch', head]);
    socket.cut();
  });

  it('5.5 nothing is appended to a stream that was deleted and made anew', async () => {
    const stream = freshStream('deleted');
    const socket = await LiveSocket.open(broker.port, stream);
    await deleteStream(broker.port, stream);
    socket.sayMap({ kind: 'publish', ref: 'late', events: [event('late')] });
    await createStream(broker.port, stream);
    await socket.untilClosed();
    assert.deepEqual(await readAll(broker.port, stream), []);
  });
});

describe('5.5 how much may be published over a WebSocket', () => {
  const broker = useBroker('--publish-events-rate', '2');

  it('9.3 over the rate it is told when to come back', async () => {
    const socket = await LiveSocket.open(broker.port, freshStream('rate'));
    await socket.publish({ events: range(1, 100).map(() => event('')) });
    const refused = await socket.publish({ events: [event('')] });
    assert.equal(refused.code, 'rate_limited');
    assert.ok(Number(refused.retryAfter) >= 1);
    socket.cut();
  });
});

describe('5.5 publishing over a WebSocket with a durable log', () => {
  it('5.5 at most 64 messages wait for their answers; each has one, and what was accepted is there, in order (I4)', async (context) => {
    const broker = await DurableBroker.start(context);
    const stream = freshStream('burst');
    const socket = await LiveSocket.open(broker.port, stream);
    // All are there when it goes on, so it takes them up before any is committed.
    await broker.process.standStill();
    for (const ref of range(1, 200)) socket.sayMap({ kind: 'publish', ref, events: [event(String(ref))] });
    await new Promise((resolve) => setImmediate(resolve));
    broker.process.signal('SIGCONT');
    await socket.until(
      'all answers',
      () => socket.messages.filter(({ ref }) => ref !== undefined).length === 200,
    );
    const accepted = socket.ofKind('published');
    const refused = socket.ofKind('error');
    assert.ok(refused.length > 0 && refused.every(({ code }) => code === 'too_many_messages'));
    await socket.untilSeq(accepted.length);
    assert.deepEqual(
      socket.data,
      accepted.map(({ ref }) => String(ref)),
    );
    const metrics = await scrape(broker.port);
    assert.equal(total(metrics, 'gapless_websocket_messages_total'), 200);
    assert.equal(total(metrics, 'gapless_websocket_messages_refused_total'), refused.length);
    socket.cut();
    await broker.end();
  });

  it('5.5 a publish whose connection broke, and that is repeated, stands there once', async (context) => {
    const broker = await DurableBroker.start(context, '--threads', '2');
    const stream = freshStream('broken');
    await publish(broker.port, stream, 'first', MEDIA_TYPES.text);
    for (const seq of range(0, 19)) {
      const socket = await LiveSocket.open(broker.port, stream);
      const text = `publish ${seq}`;
      socket.sayMap({
        kind: 'publish',
        events: [event(text)],
        producerId: 'a',
        producerEpoch: 0,
        producerSeq: seq,
      });
      if (seq % 2 === 0) await socket.untilEvents(1);
      socket.cut();
      answeredOf(
        await request(broker.port, producerRequest({ stream, id: 'a', epoch: 0, seq, lines: [text] })),
      );
    }
    const events = await readAll(broker.port, stream);
    assert.deepEqual(
      events.map(({ data }) => data),
      ['first', ...range(0, 19).map((seq) => `publish ${seq}`)],
    );
    assert.equal(seqOf(events.at(-1)?.id ?? ''), 21);
    await broker.end();
  });
});

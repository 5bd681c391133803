import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  assertProblem,
  closeStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { SseSubscription } from '../support/sse-client.js';

describeOnEdges('4.1 where a subscription begins', [], (broker) => {
  async function filled(word: string): Promise<{ stream: string; epoch: string }> {
    const stream = freshStream(word);
    const { epoch } = await publishLines(
      broker.port,
      stream,
      range(1, 6).map((seq) => `event ${seq}`),
    );
    return { stream, epoch };
  }

  /** Subscribes, publishes one more event (the seventh), and returns the seqs that came up to it. */
  async function seqsFrom(
    stream: string,
    options: Parameters<typeof SseSubscription.open>[2],
  ): Promise<number[]> {
    const subscription = await SseSubscription.open(broker.port, stream, options);
    const { last } = await publish(broker.port, stream, 'one more');
    await subscription.untilSeq(last);
    subscription.cut();
    return subscription.seqs;
  }

  it('4.1 Last-Event-ID resumes after that event', async () => {
    const { stream, epoch } = await filled('header');
    assert.deepEqual(await seqsFrom(stream, { lastEventId: cursorOf(epoch, 4) }), [5, 6, 7]);
  });

  it('4.1 without the header, ?cursor= does the same', async () => {
    const { stream, epoch } = await filled('query');
    assert.deepEqual(await seqsFrom(stream, { cursor: cursorOf(epoch, 4) }), [5, 6, 7]);
  });

  it('4.1 both given and different: the header wins', async () => {
    const { stream, epoch } = await filled('both');
    const options = { lastEventId: cursorOf(epoch, 5), cursor: cursorOf(epoch, 1) };
    assert.deepEqual(await seqsFrom(stream, options), [6, 7]);
    const { last } = await publish(broker.port, stream, 'eight');
    const overWord = await SseSubscription.open(broker.port, stream, {
      lastEventId: cursorOf(epoch, 7),
      cursor: 'earliest',
    });
    await overWord.untilSeq(last);
    assert.deepEqual(overWord.seqs, [8]);
    overWord.cut();
  });

  it('4.1 the header wins over a ?cursor= that has been evicted or belongs to another epoch', async () => {
    const { stream, epoch } = await filled('stale-query');
    assert.deepEqual(
      await seqsFrom(stream, { lastEventId: cursorOf(epoch, 6), cursor: 'zzzzzzzzzz.3' }),
      [7],
    );
  });

  it('4.1 `earliest` begins with the first event there is, in the header and in the query', async () => {
    const inQuery = await filled('earliest');
    assert.deepEqual(await seqsFrom(inQuery.stream, { cursor: 'earliest' }), range(1, 7));
    const inHeader = await filled('earliest');
    assert.deepEqual(await seqsFrom(inHeader.stream, { lastEventId: 'earliest' }), range(1, 7));
  });

  it('4.1 `latest`, an empty header and no cursor at all are live from now', async () => {
    for (const options of [{ cursor: 'latest' }, { lastEventId: 'latest' }, { lastEventId: '' }, {}]) {
      const { stream } = await filled('live');
      assert.deepEqual(await seqsFrom(stream, options), [7], JSON.stringify(options));
    }
  });

  it('4.1 an empty ?cursor= is malformed', async () => {
    const { stream } = await filled('empty-query');
    const subscription = await SseSubscription.ask(broker.port, stream, { cursor: '' });
    assertProblem(await subscription.refusal(), 400, 'malformed');
  });

  it('4.1 on a closed stream no cursor is 204', async () => {
    const { stream } = await filled('closed');
    await closeStream(broker.port, stream);
    for (const options of [{}, { lastEventId: '' }, { cursor: 'latest' }]) {
      const subscription = await SseSubscription.ask(broker.port, stream, options);
      assert.equal((await subscription.refusal()).status, 204, JSON.stringify(options));
    }
  });

  it('4.1 <epoch>.0 is before the first event, also on a stream that is still empty', async () => {
    const { stream, epoch } = await filled('zero');
    assert.deepEqual(await seqsFrom(stream, { lastEventId: cursorOf(epoch, 0) }), range(1, 7));
    const empty = freshStream('zero');
    const first = await SseSubscription.open(broker.port, empty);
    const primed = await first.untilPrimed();
    first.cut();
    assert.match(primed, /\.0$/);
    assert.deepEqual(await seqsFrom(empty, { lastEventId: primed }), [1]);
  });
});

describeOnEdges('4.2 the answer to a subscription', [], (broker) => {
  it('4.2 it is 200 at once, with the promised headers, although there is no event', async () => {
    const stream = freshStream('headers');
    const subscription = await SseSubscription.open(broker.port, stream);
    const state = await stateOf(broker.port, stream);
    assert.match(subscription.header('content-type') ?? '', /^text\/event-stream(;|$)/);
    assert.equal(subscription.header('cache-control'), 'no-store, no-transform');
    assert.equal(subscription.header('x-accel-buffering'), 'no');
    assert.equal(subscription.header('gapless-epoch'), state.epoch);
    assert.equal(subscription.header('gapless-floor'), '1');
    assert.equal(subscription.header('gapless-head'), '0');
    subscription.cut();
  });

  it('4.2 first comes `retry:`, then the priming frame with the id of the position, then the events', async () => {
    const stream = freshStream('priming');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two', 'three']);
    const subscription = await SseSubscription.open(broker.port, stream, {
      lastEventId: cursorOf(epoch, 1),
      keepText: true,
    });
    await subscription.untilEvents(2);
    const expected = new RegExp(
      `^retry: \\d+\\n(\\n)?id: ${epoch}\\.1\\n\\nid: ${epoch}\\.2\\ndata: two\\n\\nid: ${epoch}\\.3\\n`,
    );
    assert.match(subscription.text, expected);
    subscription.cut();
  });

  it('4.2 the primed id is the position from which a client that saw nothing can resume', async () => {
    const stream = freshStream('primed');
    await publishLines(broker.port, stream, ['one', 'two']);
    for (const [options, seq] of [
      [{}, 2],
      [{ cursor: 'latest' }, 2],
      [{ cursor: 'earliest' }, 0],
    ] as const) {
      const subscription = await SseSubscription.open(broker.port, stream, options);
      await subscription.untilPrimed();
      assert.match(subscription.idsWithoutEvent[0] ?? '', new RegExp(`\\.${seq}$`), JSON.stringify(options));
      subscription.cut();
    }
  });

  it('4.2 a client that broke before its first event misses nothing (I2)', async () => {
    const stream = freshStream('primed-resume');
    await publish(broker.port, stream, 'before');
    const live = await SseSubscription.open(broker.port, stream);
    const primed = await live.untilPrimed();
    live.cut();
    await publishLines(broker.port, stream, ['while away 1', 'while away 2']);
    const resumed = await SseSubscription.open(broker.port, stream, { lastEventId: primed });
    await resumed.untilEvents(2);
    assert.deepEqual(resumed.data, ['while away 1', 'while away 2']);
    resumed.cut();
  });

  it('4.2 once the priming frame is there, no event published afterwards is missed', async () => {
    for (let round = 0; round < 40; round++) {
      const stream = freshStream('registered');
      const subscription = await SseSubscription.open(broker.port, stream);
      await subscription.untilPrimed();
      await publish(broker.port, stream, `round ${round}`);
      await subscription.untilEvents(1);
      assert.deepEqual(subscription.seqs, [1]);
      subscription.cut();
    }
  });

  it('4.2 the retry has jitter, so that a thousand clients do not come back in one instant', async () => {
    const stream = freshStream('jitter');
    const subscriptions = await Promise.all(
      range(1, 30).map(() => SseSubscription.open(broker.port, stream)),
    );
    await Promise.all(subscriptions.map((subscription) => subscription.untilPrimed()));
    const retries = subscriptions.map((subscription) => subscription.retries[0] ?? 0);
    assert.ok(retries.every((retry) => retry > 0));
    assert.ok(new Set(retries).size >= 10, `only ${new Set(retries).size} different values of 30`);
    for (const subscription of subscriptions) subscription.cut();
  });
});

describeOnEdges('4.3 frames', [], (broker) => {
  it('4.3 a frame is id, event unless it is message, and one data line per line', async () => {
    const stream = freshStream('frames');
    const { epoch } = await publish(broker.port, stream, 'plain');
    await publish(broker.port, stream, 'a\nb\n', MEDIA_TYPES.text, { 'Gapless-Event': 'typed' });
    await publish(broker.port, stream, 'x', MEDIA_TYPES.text, { 'Gapless-Event': 'message' });
    await publish(broker.port, stream, '');
    const subscription = await SseSubscription.open(broker.port, stream, {
      cursor: 'earliest',
      keepText: true,
    });
    await subscription.untilEvents(4);
    const frames = [
      `id: ${epoch}.1\ndata: plain\n\n`,
      `id: ${epoch}.2\nevent: typed\ndata: a\ndata: b\ndata: \n\n`,
      `id: ${epoch}.3\ndata: x\n\n`,
      `id: ${epoch}.4\ndata: \n\n`,
    ];
    assert.ok(subscription.text.endsWith(frames.join('')), subscription.text);
    subscription.cut();
  });

  it('4.3 every line has a colon', async () => {
    const stream = freshStream('colons');
    const subscription = await SseSubscription.open(broker.port, stream);
    await publish(broker.port, stream, '\n\n\n');
    await publish(broker.port, stream, Buffer.from([0]), MEDIA_TYPES.binary);
    await subscription.untilEvents(2);
    assert.deepEqual(subscription.linesWithoutColon, []);
    subscription.cut();
  });

  it('4.3 an event of a megabyte with a hundred thousand lines arrives whole', async () => {
    const stream = freshStream('large');
    const data = range(1, 100_000)
      .map((line) => String(line))
      .join('\n');
    const subscription = await SseSubscription.open(broker.port, stream);
    await subscription.untilPrimed();
    await publish(broker.port, stream, data);
    await subscription.untilEvents(1);
    assert.ok(subscription.data[0] === data);
    subscription.cut();
  });
});

describe('4.3 heartbeats', () => {
  const broker = useBroker('--heartbeat-interval-ms', '50');

  it('4.3 an idle subscription gets comments, which are no events and have a colon', async () => {
    const stream = freshStream('idle');
    const subscription = await SseSubscription.open(broker.port, stream);
    await subscription.until('three comments', () => subscription.comments >= 3);
    assert.equal(subscription.eventCount, 0);
    assert.deepEqual(subscription.linesWithoutColon, []);
    const { last } = await publish(broker.port, stream, 'still here');
    await subscription.untilSeq(last);
    assert.deepEqual(subscription.data, ['still here']);
    subscription.cut();
  });

  it('4.3 a comment never stands inside a frame', async () => {
    const stream = freshStream('whole');
    const subscription = await SseSubscription.open(broker.port, stream, { keepText: true });
    for (const round of range(1, 10)) {
      await publish(broker.port, stream, `line\n${round}`);
      const before = subscription.comments;
      await subscription.until('a comment', () => subscription.comments > before);
    }
    for (const block of subscription.text.split('\n\n')) {
      const isComment = block.startsWith(':');
      assert.ok(isComment || !/^:/m.test(block), JSON.stringify(block));
    }
    subscription.cut();
  });
});

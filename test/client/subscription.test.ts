import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient, json, ResumeUnavailableError, StreamDeletedError } from '#gapless/client/client.js';
import { useBroker } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, MEDIA_TYPES, publish, publishLines } from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const FAST = { retryMs: 1, idleTimeoutMs: 20_000 };

describe('a subscription of the client', () => {
  const broker = useBroker('--retry-ms', '100', '--heartbeat-interval-ms', '200');
  const client = (): GaplessClient => new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });

  async function take<T>(events: AsyncIterable<T>, count: number): Promise<T[]> {
    const taken: T[] = [];
    for await (const event of events) if (taken.push(event) === count) break;
    return taken;
  }

  it('gives every event once, in order, with its type, and JSON as what it stands for', async () => {
    const stream = freshStream('typed');
    await publish(broker.port, stream, '{"n":1}', MEDIA_TYPES.json, { 'Gapless-Event': 'count' });
    await publish(broker.port, stream, '{"n":2}', MEDIA_TYPES.json);
    const events = client().subscribe(stream, { cursor: 'earliest', decode: json<{ n: number }> });
    assert.deepEqual(
      (await take(events, 2)).map(({ type, data }) => [type, data.n]),
      [
        ['count', 1],
        ['message', 2],
      ],
    );
    assert.equal(seqOf(events.cursor ?? ''), 2);
  });

  it('resumes after a cut at every byte of the answer, without a gap and without a duplicate (I1)', async () => {
    const stream = freshStream('cut');
    const { epoch, last } = await publishLines(
      broker.port,
      stream,
      range(1, 40).map((n) => `event ${n} ä\r€`),
    );
    const proxy = await TcpProxy.start(broker.port);
    const cutting = new GaplessClient({ url: `http://127.0.0.1:${proxy.port}` });
    // Each connection lives a byte longer than the one before; the server's `retry` would make it long.
    let bytes = 300;
    proxy.cutAfterBytes(bytes);
    const seqs: number[] = [];
    const onStatus = ({ state }: { state: string }): void => {
      if (state === 'waiting') proxy.cutAfterBytes((bytes += 7));
    };
    const events = cutting.subscribe(stream, { cursor: `${epoch}.0`, ...FAST, onStatus });
    for await (const { id } of events) {
      if (seqs.push(seqOf(id)) === last) break;
    }
    assert.deepEqual(seqs, range(1, last));
    assert.ok(proxy.requestHeads.length > 3, 'there were cuts');
    await proxy.stop();
  });

  it('ends when the stream was closed and all of it was given, also when it is closed already', async () => {
    const stream = freshStream('closed');
    await publishLines(broker.port, stream, ['one', 'two']);
    await client().closeStream(stream);
    const seen: string[] = [];
    for await (const { data } of client().subscribe(stream, { cursor: 'earliest' })) seen.push(data);
    for await (const { data } of client().subscribe(stream, { cursor: 'latest' })) seen.push(data);
    assert.deepEqual(seen, ['one', 'two']);
  });

  it('throws what the server refused, with where it can go on, and goes on there', async () => {
    const stream = freshStream('evicted');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 5000).map(String));
    const error = await take(client().subscribe(stream, { cursor: cursorOf(epoch, 1) }), 1).then(
      () => assert.fail('it is resumed'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ResumeUnavailableError);
    assert.deepEqual(
      [error.reason, error.cursor, error.epoch, error.head, error.status],
      ['evicted', cursorOf(epoch, 1), epoch, 5000, 410],
    );
    const [first] = await take(client().subscribe(stream, { cursor: error.earliest ?? '' }), 1);
    assert.equal(seqOf(first?.id ?? ''), error.floor);
  });

  it('throws for a cursor of another epoch, one beyond the head, and what is none', async () => {
    const stream = freshStream('refused');
    const { epoch } = await publish(broker.port, stream, 'one');
    for (const [cursor, reason] of [
      ['abcdefgh01.1', 'epoch_changed'],
      [cursorOf(epoch, 7), 'ahead_of_head'],
    ] as const) {
      await assert.rejects(take(client().subscribe(stream, { cursor }), 1), {
        name: 'ResumeUnavailableError',
        reason,
      });
    }
    await assert.rejects(take(client().subscribe(stream, { cursor: 'nonsense' }), 1), { code: 'malformed' });
  });

  it('an empty cursor, as of a store that has none, is no cursor: it does not begin at what comes next; nor is what no header can carry', async () => {
    for (const events of [
      client().subscribe('s', { cursor: 'abcdefgh01.1\n€' }),
      client().subscribeMany(['s', 't'], { cursor: '€' }),
      client().subscribePrefix('s', { cursor: '€' }),
      client().subscribe('s', { cursor: '' }),
      client().subscribeMany(['s', 't'], { cursor: '' }),
      client().subscribeMany(['s', 't'], { cursor: { s: '' } }),
      client().subscribePrefix('s', { cursor: '' }),
    ])
      await assert.rejects(events[Symbol.asyncIterator]().next(), {
        name: 'ResumeUnavailableError',
        code: 'malformed',
        reason: 'malformed',
      });
  });

  it('throws when the stream is deleted under it', async () => {
    const stream = freshStream('deleted');
    const { epoch } = await publish(broker.port, stream, 'one');
    const events = client().subscribe(stream, { cursor: 'earliest', ...FAST });
    await assert.rejects(
      async () => {
        for await (const _event of events) await client().deleteStream(stream);
      },
      (error) => error instanceof StreamDeletedError && error.cursor === cursorOf(epoch, 1),
    );
  });

  it('passes over what its types leave out, and comes back behind it', async () => {
    const stream = freshStream('filtered');
    const { epoch } = await publish(broker.port, stream, 'one', MEDIA_TYPES.text, { 'Gapless-Event': 'a' });
    const proxy = await TcpProxy.start(broker.port);
    const events = new GaplessClient({ url: `http://127.0.0.1:${proxy.port}` }).subscribe(stream, {
      cursor: 'earliest',
      types: ['a'],
      ...FAST,
    });
    const iterator = events[Symbol.asyncIterator]();
    assert.equal((await iterator.next()).value?.data, 'one');
    const next = iterator.next();
    await publishLines(broker.port, stream, ['untyped', 'untyped']);
    // The heartbeat moves the position; then the connection is cut, and the resume says where it was.
    await eventually('its position', () => events.cursor === cursorOf(epoch, 3));
    proxy.cutAll();
    await publish(broker.port, stream, 'four', MEDIA_TYPES.text, { 'Gapless-Event': 'a' });
    assert.equal((await next).value?.id, cursorOf(epoch, 4));
    assert.match(proxy.requestHeads.at(-1) ?? '', new RegExp(`last-event-id: ${cursorOf(epoch, 3)}`, 'i'));
    await iterator.return();
    await proxy.stop();
  });

  it('refuses a type with a comma: the broker would take it for two', async () => {
    for (const events of [
      client().subscribe('s', { types: ['a,b'] }),
      client().subscribeMany(['s'], { types: ['a,b'] }),
      client().subscribePrefix('s', { types: ['a', 'b,c'] }),
    ])
      await assert.rejects(events[Symbol.asyncIterator]().next(), { code: 'invalid_event_type', status: 0 });
  });

  it('holds no connection when the caller has left, or has aborted', async () => {
    const stream = freshStream('left');
    await publish(broker.port, stream, 'one');
    const subscribers = async (): Promise<number | undefined> => (await client().state(stream))?.subscribers;
    await take(client().subscribe(stream, { cursor: 'earliest' }), 1);
    const aborting = new AbortController();
    const waiting = take(client().subscribe(stream, { signal: aborting.signal }), 1);
    await eventually('a subscriber', async () => (await subscribers()) === 1);
    aborting.abort(new Error('enough'));
    await assert.rejects(waiting, { message: 'enough' });
    await eventually('it to be gone', async () => (await subscribers()) === 0);
  });

  it('reads no more than the caller takes: what is evicted meanwhile is missed, and said', async () => {
    const stream = freshStream('slow');
    await createStream(broker.port, stream, { retention: { bytes: 30_000_000 } });
    const fill = async (): Promise<void> => {
      const lines = range(1, 10).map(() => 'x'.repeat(60_000));
      for (const _round of range(1, 40)) await publishLines(broker.port, stream, lines);
    };
    await fill();
    const iterator = client()
      .subscribe(stream, { cursor: 'earliest', ...FAST })
      [Symbol.asyncIterator]();
    let last = seqOf((await iterator.next()).value?.id ?? '');
    for (const _time of range(1, 4)) await fill();
    await assert.rejects(
      async () => {
        for (; ; last++) assert.equal(seqOf((await iterator.next()).value?.id ?? ''), last + 1);
      },
      { name: 'ResumeUnavailableError', reason: 'evicted' },
    );
    assert.ok(last < 400, `${last} of the first 400 events were read before anybody took them`);
  });
});

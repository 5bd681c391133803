import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  GaplessClient,
  json,
  type RawEventOfMany,
  ResumeUnavailableError,
  StreamDeletedError,
} from '#gapless/client/client.js';
import { useBroker } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, publish, publishLines } from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const FAST = { retryMs: 1, idleTimeoutMs: 20_000 };

describe('a subscription of the client to several streams', () => {
  const broker = useBroker('--retry-ms', '100', '--heartbeat-interval-ms', '200');
  const client = (port = broker.port): GaplessClient =>
    new GaplessClient({ url: `http://127.0.0.1:${port}` });

  async function filled(count: number, events: number): Promise<{ names: string[]; epochs: string[] }> {
    const names = range(1, count).map((index) => freshStream(`many-${index}`));
    const epochs: string[] = [];
    for (const name of names) {
      const lines = range(1, events).map((seq) => `{"of":"${name}","seq":${seq},"more":"ä€"}`);
      epochs.push((await publishLines(broker.port, name, lines)).epoch);
    }
    return { names, epochs };
  }

  async function take<T>(events: AsyncIterable<T>, count: number): Promise<T[]> {
    const taken: T[] = [];
    for await (const event of events) if (taken.push(event) === count) break;
    return taken;
  }

  it('gives the events of each once and in order, with its name, type and data, and binary ones as bytes', async () => {
    const { names } = await filled(3, 4);
    const [first = ''] = names;
    await publish(broker.port, first, Buffer.from([0, 255]), 'application/octet-stream', {
      'Gapless-Event': 'raw',
    });
    const events = client().subscribeMany(names, {
      cursor: 'earliest',
      decode: (event: RawEventOfMany) => event,
    });
    const taken = await take(events, 13);
    for (const name of names) {
      const own = taken.filter(({ stream }) => stream === name);
      assert.deepEqual(
        own.map(({ id }) => seqOf(id)),
        range(1, name === first ? 5 : 4),
      );
      assert.ok(own.every(({ data }) => data.stream === name));
    }
    const raw = taken.find(({ type }) => type === 'raw');
    assert.deepEqual([raw?.stream, raw?.data.data], [first, new Uint8Array([0, 255])]);
    assert.equal(seqOf(events.cursorOf(first) ?? ''), 5);
  });

  it('resumes them all after a cut at every byte of the answer, without a gap and without a duplicate (I1)', async () => {
    const { names } = await filled(3, 25);
    const proxy = await TcpProxy.start(broker.port);
    let bytes = 700;
    proxy.cutAfterBytes(bytes);
    const onStatus = ({ state }: { state: string }): void => {
      if (state === 'waiting') proxy.cutAfterBytes((bytes += 7));
    };
    const seen = new Map<string, number[]>(names.map((name) => [name, []]));
    let count = 0;
    const decode = json<{ of: string; seq: number }>;
    for await (const { stream, id, data } of client(proxy.port).subscribeMany(names, {
      cursor: 'earliest',
      decode,
      onStatus,
      ...FAST,
    })) {
      assert.deepEqual([data.of, data.seq], [stream, seqOf(id)]);
      seen.get(stream)?.push(seqOf(id));
      if (++count === 75) break;
    }
    for (const name of names) assert.deepEqual(seen.get(name), range(1, 25));
    assert.ok(proxy.requestHeads.length > 3, 'there were cuts');
    await proxy.stop();
  });

  it('goes on from what it gave another time, or from a cursor of each stream', async () => {
    const { names, epochs } = await filled(2, 3);
    const before = client().subscribeMany(names, { cursor: 'earliest' });
    const given = await take(before, 2);
    const rest = await take(client().subscribeMany(names, { cursor: before.cursor ?? '' }), 4);
    assert.deepEqual(new Set([...given, ...rest].map(({ id }) => id)).size, 6);
    const cursor = { [names[0] ?? '']: cursorOf(epochs[0] ?? '', 2), [names[1] ?? '']: 'earliest' };
    const own = await take(client().subscribeMany(names, { cursor }), 4);
    assert.deepEqual(
      own.map(({ id }) => id).sort(),
      [cursorOf(epochs[0] ?? '', 3), ...range(1, 3).map((seq) => cursorOf(epochs[1] ?? '', seq))].sort(),
    );
  });

  it('begins where each is said to, whatever its name', async () => {
    const names = ['constructor', '__proto__', 'toString'];
    for (const name of names) await publishLines(broker.port, name, ['one', 'two']);
    const cursor = Object.fromEntries([
      ['__proto__', 'earliest'],
      ['toString', 'earliest'],
    ]);
    const events = client().subscribeMany(names, { cursor });
    const streams = (await take(events, 4)).map(({ stream }) => stream).sort();
    assert.deepEqual(streams, ['__proto__', '__proto__', 'toString', 'toString']);
    assert.equal(events.cursorOf('constructor'), null);
  });

  it('throws which streams cannot go on and why, or tells of each and goes on with all', async () => {
    const { names, epochs } = await filled(1, 3);
    const small = freshStream('small');
    await createStream(broker.port, small, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, small, range(1, 20).map(String));
    const both = [...names, small];
    const cursor = { [names[0] ?? '']: cursorOf(epochs[0] ?? '', 1), [small]: cursorOf(epoch, 1) };
    const error = await take(client().subscribeMany(both, { cursor }), 1).then(
      () => assert.fail('it is resumed'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ResumeUnavailableError);
    assert.deepEqual(
      error.streams.map(({ stream, reason, head }) => [stream, reason, head]),
      [[small, 'evicted', 20]],
    );
    const told: [string, string, number | null][] = [];
    const onUnavailable = (stream: string, { reason, head }: ResumeUnavailableError): void => {
      told.push([stream, reason, head]);
    };
    const events = client().subscribeMany(both, { cursor, onUnavailable })[Symbol.asyncIterator]();
    const first = await events.next();
    assert.deepEqual(told, [[small, 'evicted', 20]], 'before any event');
    const second = await events.next();
    await publishLines(broker.port, small, ['21']);
    const third = await events.next();
    assert.deepEqual(
      [first, second, third].map(({ value }) => value?.id),
      [cursorOf(epochs[0] ?? '', 2), cursorOf(epochs[0] ?? '', 3), cursorOf(epoch, 21)],
    );
    await events.return?.();
  });

  it('ends when all were closed and given, says so of each, and throws where one is deleted', async () => {
    const { names } = await filled(2, 2);
    const [a = '', b = ''] = names;
    await client().closeStream(a);
    const closed: string[] = [];
    const seen: string[] = [];
    for await (const { id } of client().subscribeMany(names, {
      cursor: 'earliest',
      onClosed: (stream) => closed.push(stream),
    })) {
      if (seen.push(id) === 4) await client().closeStream(b);
    }
    assert.deepEqual([seen.length, closed], [4, [a, b]]);
    assert.deepEqual(await take(client().subscribeMany(names), 1), []);

    const { names: others, epochs } = await filled(2, 1);
    await assert.rejects(
      async () => {
        for await (const { stream } of client().subscribeMany(others, { cursor: 'earliest' })) {
          if (stream === others[0]) await client().deleteStream(stream);
        }
      },
      (error) =>
        error instanceof StreamDeletedError &&
        error.stream === others[0] &&
        error.cursor === cursorOf(epochs[0] ?? '', 1),
    );
  });

  it('passes over what its types leave out', async () => {
    const { names } = await filled(2, 3);
    for (const name of names) {
      await publish(broker.port, name, 'x', 'text/plain', { 'Gapless-Event': 'tick' });
    }
    const taken = await take(client().subscribeMany(names, { cursor: 'earliest', types: ['tick'] }), 2);
    assert.deepEqual(taken.map(({ stream }) => stream).sort(), [...names].sort());
  });

  it('holds no connection when the caller has left, and refuses what is no name without asking', async () => {
    const { names } = await filled(2, 1);
    await take(client().subscribeMany(names, { cursor: 'earliest' }), 2);
    await eventually('nobody to read it', async () => {
      return (await client().state(names[0] ?? ''))?.subscribers === 0;
    });
    await assert.rejects(take(client(1).subscribeMany(['a&b']), 1), { code: 'invalid_stream_name' });
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  GaplessClient,
  json,
  type PrefixSubscription,
  ResumeUnavailableError,
  StreamDeletedError,
} from '#gapless/client/client.js';
import { BrokerProcess, describeOnEdges } from '../support/broker-process.js';
import { range, seqOf } from '../support/cursor.js';
import { closeStream, createStream, deleteStream, publish, publishLines } from '../support/gapless-client.js';
import { freshPrefix } from '../support/prefix-reader.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const FAST = { retryMs: 1, idleTimeoutMs: 20_000 };
const clientOf = (port: number): GaplessClient => new GaplessClient({ url: `http://127.0.0.1:${port}` });

async function take<T>(events: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const event of events) if (taken.push(event) === count) break;
  return taken;
}

describeOnEdges('a subscription of the client by prefix', ['--retry-ms', '100'], (broker) => {
  const lines = (stream: string, count: number): Promise<unknown> =>
    publishLines(
      broker.port,
      stream,
      range(1, count).map((seq) => `{"of":"${stream}","seq":${seq}}`),
    );

  it('resumes all streams, and takes up new ones, after cuts at any byte of the answer (I1)', async () => {
    const prefix = freshPrefix();
    const names = range(1, 6).map((index) => `${prefix}${index}`);
    for (const name of names.slice(0, 3)) await lines(name, 20);
    const proxy = await TcpProxy.start(broker.port);
    let bytes = 500;
    proxy.cutAfterBytes(bytes);
    const onStatus = ({ state }: { state: string }): void => {
      if (state === 'waiting') proxy.cutAfterBytes((bytes += 7));
    };
    const seen = new Map<string, number[]>(names.map((name) => [name, []]));
    const decode = json<{ of: string; seq: number }>;
    let count = 0;
    for await (const { stream, id, data } of clientOf(proxy.port).subscribePrefix(prefix, {
      cursor: 'earliest',
      decode,
      onStatus,
      ...FAST,
    })) {
      assert.deepEqual([data.of, data.seq], [stream, seqOf(id)]);
      seen.get(stream)?.push(seqOf(id));
      count++;
      if (count % 15 === 0 && count <= 45) await lines(names[2 + count / 15] as string, 20);
      if (count === 120) break;
    }
    for (const name of names) assert.deepEqual(seen.get(name), range(1, 20), name);
    assert.ok(proxy.requestHeads.length > 3, 'there were cuts');
    await proxy.stop();
  });

  it('goes on from what it gave another time', async () => {
    const prefix = freshPrefix();
    await lines(`${prefix}a`, 2);
    const before = clientOf(broker.port).subscribePrefix(prefix, { cursor: 'earliest' });
    await take(before, 2);
    await lines(`${prefix}b`, 2);
    const after = clientOf(broker.port).subscribePrefix(prefix, { cursor: before.cursor as string });
    assert.deepEqual(
      (await take(after, 2)).map(({ stream }) => stream),
      [`${prefix}b`, `${prefix}b`],
    );
    assert.equal(seqOf(after.cursorOf(`${prefix}b`) ?? ''), 2);
    assert.equal(after.cursorOf(`${prefix}a`), null);
  });

  it('tells of streams that were closed, deleted and made anew, and ends where nobody wants to be told of a deletion', async () => {
    const prefix = freshPrefix();
    const [a, b] = [`${prefix}a`, `${prefix}b`];
    const told: string[] = [];
    const events = clientOf(broker.port).subscribePrefix(prefix, {
      cursor: 'earliest',
      onClosed: (stream) => told.push(`closed ${stream}`),
      onDeleted: (stream) => told.push(`deleted ${stream}`),
    });
    await publish(broker.port, a, 'one');
    let count = 0;
    for await (const { stream, id } of events) {
      count++;
      if (count === 1) {
        await closeStream(broker.port, a);
        await publish(broker.port, b, 'one');
      }
      if (count === 2) {
        await deleteStream(broker.port, b);
        await publish(broker.port, b, 'anew');
      }
      if (count < 3) continue;
      assert.deepEqual([stream, seqOf(id)], [b, 1]);
      break;
    }
    assert.deepEqual(told, [`closed ${a}`, `deleted ${b}`]);
    const other = clientOf(broker.port).subscribePrefix(prefix, { cursor: events.cursor as string });
    const deleting = deleteStream(broker.port, b);
    await assert.rejects(take(other, 1), (error) => {
      // Deleted before it came back, what it missed is not known; after that, it is told.
      const isTold = error instanceof StreamDeletedError && error.stream === b;
      return isTold || (error instanceof ResumeUnavailableError && error.streams[0]?.stream === b);
    });
    await deleting;
  });

  it('one that is evicted meanwhile ends it, or is told and left out', async () => {
    const prefix = freshPrefix();
    const tight = `${prefix}tight`;
    await createStream(broker.port, tight, { retention: { events: 2 } });
    await publish(broker.port, tight, '1');
    const before = clientOf(broker.port).subscribePrefix(prefix, { cursor: 'earliest' });
    await take(before, 1);
    await publishLines(broker.port, tight, range(2, 20).map(String));
    const cursor = before.cursor as string;
    await assert.rejects(take(clientOf(broker.port).subscribePrefix(prefix, { cursor }), 1), (error) => {
      assert.ok(error instanceof ResumeUnavailableError);
      assert.deepEqual(
        error.streams.map(({ stream, reason }) => [stream, reason]),
        [[tight, 'evicted']],
      );
      return true;
    });
    const told: [string, string][] = [];
    const on: PrefixSubscription<string> = clientOf(broker.port).subscribePrefix(prefix, {
      cursor,
      onUnavailable: (stream, { reason }) => {
        told.push([stream, reason]);
        void publish(broker.port, tight, '21');
      },
    });
    const [event] = await take(on, 1);
    assert.equal(seqOf(event?.id ?? ''), 21);
    assert.deepEqual(told, [[tight, 'evicted']]);
  });
});

it('a cursor that a broker kept is unknown to the next one, and the subscription says so', async () => {
  const first = await BrokerProcess.start();
  const prefix = freshPrefix();
  await publish(first.port, `${prefix}a`, 'one');
  const events = clientOf(first.port).subscribePrefix(prefix, { cursor: 'earliest', ...FAST });
  const iterator = events[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value?.data, 'one');
  await first.kill();
  const second = await first.startAgain();
  await assert.rejects(iterator.next(), (error) => {
    assert.ok(error instanceof ResumeUnavailableError);
    assert.equal(error.reason, 'cursor_unknown');
    assert.deepEqual(error.streams, []);
    return true;
  });
  await second.stop();
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BrokerProcess, describeOnEdges, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { temporaryDirectory } from '../support/durable-broker.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import {
  assertUnknown,
  freshPrefix,
  isNotice,
  openPrefix,
  refusedPrefix,
  seqsOf,
} from '../support/prefix-reader.js';
import { parseMetrics, total } from '../support/prometheus.js';
import type { SseSubscription } from '../support/sse-client.js';

const KIB = 1024;

async function metric(port: number, name: string, labels: Record<string, string> = {}): Promise<number> {
  return total(parseMetrics((await request(port, { path: '/metrics' })).text), name, labels);
}

describeOnEdges('4.11 readers that are slow', [], (broker) => {
  async function flood(stream: string, batches: number): Promise<void> {
    const lines = range(1, 8).map(() => 'x'.repeat(32 * KIB));
    const connection = await HttpConnection.open(broker.port);
    for (const _ of range(1, batches)) await publishLines(connection, stream, lines);
    connection.destroy();
  }

  it('4.11 one that stalls goes on from where its socket stopped, in streams too that are made meanwhile (I7)', async () => {
    const prefix = freshPrefix();
    const streams = range(1, 3).map((index) => `${prefix}${index}`);
    for (const stream of streams.slice(1)) {
      await createStream(broker.port, stream, { retention: { bytes: 16 * KIB * KIB } });
    }
    const subscription = await openPrefix(broker.port, prefix);
    subscription.stall();
    await flood(streams[1] as string, 40);
    await createStream(broker.port, streams[0] as string, { retention: { bytes: 16 * KIB * KIB } });
    for (const stream of streams) await flood(stream, 10);
    subscription.unstall();
    await subscription.untilEvents(560);
    for (const [index, count] of [80, 400, 80].entries()) {
      assert.deepEqual(seqsOf(subscription, streams[index] as string), range(1, count));
    }
    // What was on its way when it broke is not lost with it: any id resumes, the first of them too.
    subscription.cut();
    const back = await openPrefix(broker.port, prefix, { lastEventId: subscription.events[3]?.id });
    await back.untilEvents(556);
    back.cut();
  });

  it('4.11 where eviction overtakes one of them it is told, with the id to go on from, and the answer ends (I2)', async () => {
    const prefix = freshPrefix();
    const [calm, flooded] = [`${prefix}calm`, `${prefix}flooded`];
    await createStream(broker.port, flooded, { retention: { bytes: 512 * KIB } });
    const query = 'on_unavailable=event';
    const subscription = await openPrefix(broker.port, prefix, { query });
    subscription.stall();
    await flood(flooded, 120);
    await publish(broker.port, calm, 'one');
    subscription.unstall();
    assert.equal(await subscription.untilEnded(), 'end');
    const last = subscription.events.at(-1);
    const refusal = JSON.parse(last?.data ?? '') as Record<string, unknown>;
    assert.deepEqual(
      [last?.type, refusal.stream, refusal.reason],
      ['resume_unavailable', flooded, 'evicted'],
    );
    const seen = seqsOf(subscription, flooded);
    assert.deepEqual(seen, range(1, seen.length));
    const back = await openPrefix(broker.port, prefix, { lastEventId: subscription.lastEventId, query });
    await publish(broker.port, flooded, 'goes on');
    await publish(broker.port, calm, 'two');
    await back.until('both', () => seqsOf(back, flooded).length > 0 && seqsOf(back, calm).at(-1) === 2);
    assert.deepEqual([...seqsOf(subscription, calm), ...seqsOf(back, calm)], [1, 2]);
    back.cut();
  });

  it('4.11 the connection is counted in each stream, and gone with it', async () => {
    const prefix = freshPrefix();
    const streams = [`${prefix}a`, `${prefix}b`];
    for (const stream of streams) await publish(broker.port, stream, 'one');
    const subscription = await openPrefix(broker.port, prefix);
    for (const stream of streams) assert.equal((await stateOf(broker.port, stream)).subscribers, 1);
    subscription.cut();
    for (const stream of streams) {
      await eventually(
        'nobody to read it',
        async () => (await stateOf(broker.port, stream)).subscribers === 0,
      );
    }
    await eventually('no subscription', async () => (await metric(broker.port, 'gapless_subscribers')) === 0);
  });
});

describeOnEdges('4.11 signs of life', ['--heartbeat-interval-ms', '50'], (broker) => {
  it('4.11 they come where there is no stream yet, and where nothing is said', async () => {
    const prefix = freshPrefix();
    const subscription = await openPrefix(broker.port, prefix);
    await subscription.until('comments without a stream', () => subscription.comments >= 2);
    await publish(broker.port, `${prefix}a`, 'one');
    await subscription.untilEvents(1);
    const before = subscription.comments;
    await subscription.until('comments with a stream', () => subscription.comments >= before + 2);
    subscription.cut();
  });

  it('4.11 what a filter leaves out is passed over with an id', async () => {
    const prefix = freshPrefix();
    const subscription = await openPrefix(broker.port, prefix, { query: 'types=tick' });
    const stream = `${prefix}a`;
    await publishLines(broker.port, stream, range(1, 5).map(String));
    await subscription.until('an id for what was left out', () => subscription.idsWithoutEvent.length >= 2);
    subscription.cut();
    const back = await openPrefix(broker.port, prefix, { lastEventId: subscription.lastEventId });
    await publish(broker.port, stream, '6');
    await back.untilEvents(1);
    assert.deepEqual(seqsOf(back, stream), [6]);
    back.cut();
  });
});

for (const threads of ['1', '3']) {
  describe(`4.11 the end of the broker, with --threads ${threads}`, () => {
    it('10 a drain ends the answer with a `retry:`, also where there is no stream; the next broker says that it does not have the cursor', async (context) => {
      const flags = ['--threads', threads, '--data-dir', temporaryDirectory(context)];
      const first = await BrokerProcess.start(...flags);
      const [empty, prefix] = [freshPrefix(), freshPrefix()];
      const waiting = await openPrefix(first.port, empty);
      await publishLines(first.port, `${prefix}a`, ['one', 'two']);
      const subscription = await openPrefix(first.port, prefix, { cursor: 'earliest' });
      await subscription.untilEvents(2);
      const retries = [waiting, subscription].map((each) => each.retries.length);
      first.signal('SIGTERM');
      for (const [index, each] of [waiting, subscription].entries()) {
        assert.equal(await each.untilEnded(), 'end');
        assert.ok(each.retries.length > (retries[index] ?? 0));
      }
      assert.deepEqual(await first.untilExit(), { code: 0, signal: null });
      const second = await first.startAgain();
      for (const each of [waiting, subscription]) {
        const of = each === waiting ? empty : prefix;
        assertUnknown(await refusedPrefix(second.port, of, { lastEventId: each.lastEventId }));
      }
      // What it has of each stream still stands there, for who begins anew.
      const anew = await openPrefix(second.port, prefix, { cursor: 'earliest' });
      await anew.untilEvents(2);
      anew.cut();
      assert.deepEqual(await second.stop(), { code: 0, signal: null });
      assert.deepEqual(second.errors, []);
    });
  });
}

describe('4.11 how long cursors are kept', () => {
  const broker = useBroker('--threads', '2', '--prefix-cursor-ms', '0');

  it('4.11 a cursor whose time is over is not known any more, and one that is open is', async () => {
    const prefix = freshPrefix();
    const open = await openPrefix(broker.port, freshPrefix());
    const first = await openPrefix(broker.port, prefix);
    first.cut();
    await eventually('one cursor', async () => (await metric(broker.port, 'gapless_prefix_cursors')) === 1);
    assertUnknown(await refusedPrefix(broker.port, prefix, { lastEventId: first.lastEventId }));
    const labels = { reason: 'cursor_unknown' };
    assert.ok((await metric(broker.port, 'gapless_resume_unavailable_total', labels)) >= 1);
    open.cut();
  });
});

describe('4.11 how many cursors and streams there may be', () => {
  const broker = useBroker('--threads', '2', '--prefix-cursors-max', '3', '--prefix-streams-max', '4');

  it('4.11 one more cursor takes the place of the one that has been away longest; those that are open stay', async () => {
    const prefix = freshPrefix();
    const kept: SseSubscription[] = [];
    for (const _ of range(1, 2)) {
      const subscription = await openPrefix(broker.port, prefix);
      subscription.cut();
      // Its connection may be found to be gone later than the next one comes.
      await eventually(
        'the end of it',
        async () => (await metric(broker.port, 'gapless_prefix_cursors_open')) === 0,
      );
      kept.push(subscription);
    }
    const open = [await openPrefix(broker.port, prefix), await openPrefix(broker.port, prefix)];
    assert.equal(await metric(broker.port, 'gapless_prefix_cursors_dropped_total'), 1);
    assertUnknown(await refusedPrefix(broker.port, prefix, { lastEventId: kept[0]?.lastEventId }));
    const back = await openPrefix(broker.port, prefix, { lastEventId: kept[1]?.lastEventId });
    const refused = await refusedPrefix(broker.port, prefix);
    assert.equal(assertProblem(refused, 503, 'too_many_subscriptions')['scope'], 'prefix');
    const taken = await openPrefix(broker.port, prefix, { lastEventId: back.lastEventId });
    assert.equal(await back.untilEnded(), 'end');
    assert.equal(await metric(broker.port, 'gapless_prefix_takeovers_total'), 1);
    for (const each of [...open, taken]) each.cut();
    await eventually(
      'the end of all',
      async () => (await metric(broker.port, 'gapless_prefix_cursors_open')) === 0,
    );
  });

  it('4.11 more streams than there may be refuse the subscription, and cut one that is open', async () => {
    const prefix = freshPrefix();
    const subscription = await openPrefix(broker.port, prefix);
    for (const index of range(1, 4)) await publish(broker.port, `${prefix}${index}`, 'one');
    await subscription.untilEvents(4);
    await publish(broker.port, `${prefix}5`, 'one');
    assert.equal(await subscription.untilEnded(), 'cut');
    const { lastEventId } = subscription;
    const problem = assertProblem(
      await refusedPrefix(broker.port, prefix, { lastEventId }),
      400,
      'invalid_query',
    );
    assert.match(String(problem['detail']), /more than 4 streams/);
    assert.equal(await metric(broker.port, 'gapless_prefixes_over_limit_total'), 2);
    // When one is gone, it goes on.
    await deleteStream(broker.port, `${prefix}5`);
    const back = await openPrefix(broker.port, prefix, { lastEventId });
    await publish(broker.port, `${prefix}1`, 'two');
    await back.untilEvents(1);
    back.cut();
  });

  it('4.11 streams that have ended and are gone make room for others', async () => {
    const prefix = freshPrefix();
    const subscription = await openPrefix(broker.port, prefix);
    for (const index of range(1, 20)) {
      const stream = `${prefix}${index}`;
      await publish(broker.port, stream, 'one');
      await closeStream(broker.port, stream);
      await subscription.untilEvents(2 * index);
      await deleteStream(broker.port, stream);
    }
    assert.deepEqual(
      subscription.events.filter(isNotice).map(({ type }) => type),
      range(1, 20).map(() => 'stream_closed'),
    );
    subscription.cut();
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range, seqOf } from '../support/cursor.js';
import { withDeadline } from '../support/deadline.js';
import { assertProblem, publish, publishLines } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import {
  askPrefix,
  eventsOf,
  filled,
  freshPrefix,
  openPrefix,
  PREFIX_ID,
  PrefixFollower,
  refusedPrefix,
  seqsOf,
} from '../support/prefix-reader.js';
import { seededPrng } from '../support/prng.js';
import type { SseSubscription } from '../support/sse-client.js';

describeOnEdges('4.11 all streams whose names begin alike', [], (broker) => {
  it('4.11 gives the events of all of them under short ids, and of no other', async () => {
    const prefix = freshPrefix();
    const streams = await filled(broker.port, prefix, ['a', 'b', 'c'], 2);
    await publish(broker.port, `x${prefix}`, 'of another');
    const all = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await all.untilEvents(6);
    for (const stream of streams) assert.deepEqual(seqsOf(all, stream), [1, 2]);
    assert.equal(new Set(all.events.map(({ id }) => id)).size, 6);
    for (const { id } of all.events) assert.match(id, PREFIX_ID);
    all.cut();
    const live = await openPrefix(broker.port, prefix);
    await publish(broker.port, streams[1] as string, 'new');
    await live.untilEvents(1);
    assert.deepEqual(
      eventsOf(live).map(({ stream, data }) => [stream, data]),
      [[streams[1], 'new']],
    );
    live.cut();
  });

  it('4.11 waits where nothing begins so, and gives a stream that is made from its first event on', async () => {
    const prefix = freshPrefix();
    const waiting = await openPrefix(broker.port, prefix);
    for (const name of range(1, 5)) {
      await publishLines(broker.port, `${prefix}${name}`, ['one', 'two']);
      await publish(broker.port, `x${prefix}${name}`, 'of another');
    }
    await waiting.untilEvents(10);
    for (const name of range(1, 5)) assert.deepEqual(seqsOf(waiting, `${prefix}${name}`), [1, 2]);
    waiting.cut();
  });

  it('4.11 a stream that was made while the subscriber was away is given whole', async () => {
    const prefix = freshPrefix();
    const first = await openPrefix(broker.port, prefix);
    first.cut();
    await filled(broker.port, prefix, ['made'], 3);
    const second = await openPrefix(broker.port, prefix, { lastEventId: first.lastEventId });
    await second.untilEvents(3);
    assert.deepEqual(seqsOf(second, `${prefix}made`), [1, 2, 3]);
    second.cut();
  });

  it('4.11 every id resumes all of them, not only the newest: nothing is missed and nothing comes twice (I2)', async (context) => {
    const prefix = freshPrefix();
    const prng = seededPrng(context);
    const follower = new PrefixFollower();
    const totals = new Map<string, number>();
    const say = async (): Promise<void> => {
      const stream = `${prefix}${prng.below(6)}`;
      const lines = range(1, 1 + prng.below(4)).map(String);
      totals.set(stream, (await publishLines(broker.port, stream, lines)).last);
    };
    let lastEventId: string | null = null;
    for (let connection = 0; connection < 25; connection++) {
      for (const _ of range(1, 3)) await say();
      const options = lastEventId === null ? { cursor: 'earliest' } : { lastEventId };
      const subscription = await openPrefix(broker.port, prefix, options);
      for (const _ of range(1, 3)) await say();
      await subscription.untilEvents(1 + prng.below(6));
      subscription.cut({ reset: prng.below(2) === 0 });
      follower.takeUp(subscription, lastEventId);
      lastEventId = prng.pick(follower.ids);
    }
    const last = await openPrefix(broker.port, prefix, { lastEventId: lastEventId as string });
    const isAll = () =>
      [...totals].every(([stream, total]) =>
        eventsOf(last).some(({ stream: of, id }) => of === stream && seqOf(id) === total),
      );
    for (const stream of totals.keys()) {
      totals.set(stream, (await publish(broker.port, stream, 'the last')).last);
    }
    await last.until('the last event of each', isAll);
    follower.takeUp(last, lastEventId);
    for (const [stream, total] of totals) assert.equal(follower.seqOf(stream), total);
    last.cut();
  });

  it('4.11 who breaks before it has seen an id of the new connection comes back with one of the one before', async () => {
    const prefix = freshPrefix();
    const [stream = ''] = await filled(broker.port, prefix, ['a'], 4);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(4);
    first.cut();
    const lastEventId = first.events[1]?.id ?? '';
    for (const _ of range(1, 3)) {
      const unseen = await openPrefix(broker.port, prefix, { lastEventId });
      await unseen.untilEvents(2);
      assert.deepEqual(seqsOf(unseen, stream), [3, 4]);
      unseen.cut();
    }
  });

  it('4.11 a subscriber that comes back takes over from the connection that it had', async () => {
    const prefix = freshPrefix();
    const [stream = ''] = await filled(broker.port, prefix, ['a'], 2);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(2);
    const second = await openPrefix(broker.port, prefix, { lastEventId: first.events[0]?.id });
    assert.equal(await first.untilEnded(), 'end');
    await publish(broker.port, stream, 'after');
    await second.untilEvents(2);
    assert.deepEqual(seqsOf(second, stream), [2, 3]);
    assert.deepEqual(seqsOf(first, stream), [1, 2]);
    second.cut();
  });

  it('4.11 of many who come back at once with one id, one goes on, and its events are whole', async () => {
    const prefix = freshPrefix();
    const [stream = ''] = await filled(broker.port, prefix, ['a'], 2);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(2);
    const lastEventId = first.events[0]?.id ?? '';
    const all = await Promise.all(range(1, 8).map(() => askPrefix(broker.port, prefix, { lastEventId })));
    for (const { status } of all) assert.equal(status, 200);
    let over = 0;
    const allButOne = new Promise<void>((resolve) => {
      for (const { ended } of all) void ended.then(() => ++over === 7 && resolve());
    });
    await withDeadline('all but one to end', allButOne);
    await publish(broker.port, stream, 'after');
    const open = () => all.filter(({ ending }) => ending === undefined);
    const [left] = open();
    assert.equal(open().length, 1);
    await left?.untilEvents(2);
    assert.deepEqual(seqsOf(left as SseSubscription, stream), [2, 3]);
    left?.cut();
  });

  it('4.11 the filter by types passes over, and the ids say so', async () => {
    const prefix = freshPrefix();
    const stream = `${prefix}a`;
    const first = await openPrefix(broker.port, prefix, { query: 'types=tick' });
    for (const n of range(1, 6)) {
      await publish(
        broker.port,
        stream,
        String(n),
        undefined,
        n % 2 === 0 ? { 'Gapless-Event': 'tick' } : {},
      );
    }
    await first.untilEvents(3);
    assert.deepEqual(seqsOf(first, stream), [2, 4, 6]);
    first.cut();
    const second = await openPrefix(broker.port, prefix, {
      lastEventId: first.events[1]?.id,
    });
    await second.untilEvents(2);
    assert.deepEqual(seqsOf(second, stream), [5, 6]);
    second.cut();
  });

  it('4.11 an id that the server does not have, or of another prefix, is refused as cursor_unknown', async () => {
    const prefix = freshPrefix();
    await filled(broker.port, prefix, ['a'], 1);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(1);
    const [token = '', count = ''] = first.lastEventId.split('.');
    first.cut();
    const unknown = [
      [prefix, `p${'a'.repeat(20)}.1`],
      [prefix, `${token}.${Number(count) + 1}`],
      [prefix, `${token}.0`],
      [prefix.slice(0, -1), first.lastEventId],
      [`${prefix}a`, first.lastEventId],
    ] as const;
    for (const [of, lastEventId] of unknown) {
      const problem = assertProblem(
        await refusedPrefix(broker.port, of, { lastEventId }),
        410,
        'resume_unavailable',
      );
      assert.deepEqual([problem.reason, problem['cursor']], ['cursor_unknown', lastEventId]);
    }
    // None of these has taken it away.
    const back = await openPrefix(broker.port, prefix, { lastEventId: first.lastEventId });
    back.cut();
    for (const lastEventId of ['p', 'abcdefghij.1', `${token}.01`, `${token}`, 'mAAAAAAAAAAA']) {
      const problem = assertProblem(
        await refusedPrefix(broker.port, prefix, { lastEventId }),
        400,
        'malformed',
      );
      assert.equal(problem.reason, 'malformed');
    }
  });

  it('4.11 what cannot be asked for is refused', async () => {
    const prefix = freshPrefix();
    const headers = { Accept: 'text/event-stream' };
    for (const [query, code] of [
      [`prefix=${prefix}&stream=a`, 'invalid_query'],
      [`prefix=${prefix}&subscriber=a`, 'invalid_query'],
      [`prefix=${prefix}&cursor=earliest&cursor=latest`, 'invalid_query'],
      [`prefix=${prefix}&on_unavailable=x`, 'invalid_query'],
      [`prefix=${prefix}&types=`, 'invalid_query'],
      [`prefix=${prefix}&cursor=`, 'malformed'],
      ['prefix=orders/', 'invalid_stream_name'],
      ['prefix=~mcp:', 'invalid_stream_name'],
      [`prefix=${'n'.repeat(201)}`, 'invalid_stream_name'],
    ] as const) {
      assertProblem(await request(broker.port, { path: `/v1/streams?${query}`, headers }), 400, code);
    }
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  type Problem,
  publish,
  publishLines,
} from '../support/gapless-client.js';
import {
  eventsOf,
  filled,
  freshPrefix,
  notices,
  openPrefix,
  PrefixFollower,
  refusedPrefix,
  seqsOf,
} from '../support/prefix-reader.js';

describeOnEdges('4.11 streams that end, of those whose names begin alike', [], (broker) => {
  it('4.11 the end of a stream is told once, and the others go on', async () => {
    const prefix = freshPrefix();
    const [a = '', b = ''] = await filled(broker.port, prefix, ['a', 'b'], 1);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(2);
    await closeStream(broker.port, a);
    await first.untilEvents(3);
    assert.deepEqual(notices(first), [['stream_closed', a]]);
    const untold = first.events[1]?.id;
    const told = first.events[2]?.id;
    first.cut();
    await publish(broker.port, b, 'more');
    const again = await openPrefix(broker.port, prefix, { lastEventId: untold });
    await again.untilEvents(2);
    assert.deepEqual(notices(again), [['stream_closed', a]]);
    again.cut();
    const after = await openPrefix(broker.port, prefix, { lastEventId: told });
    await after.untilEvents(1);
    assert.deepEqual(seqsOf(after, b), [2]);
    assert.deepEqual(notices(after), []);
    after.cut();
  });

  it('4.11 who begins, or was told, hears nothing more of streams that are over', async () => {
    const prefix = freshPrefix();
    const [a = '', b = ''] = await filled(broker.port, prefix, ['a', 'b'], 1);
    await closeStream(broker.port, a);
    const first = await openPrefix(broker.port, prefix);
    await publish(broker.port, b, 'more');
    await first.untilEvents(1);
    assert.deepEqual(notices(first), []);
    await closeStream(broker.port, b);
    await first.untilEvents(2);
    first.cut();
    const second = await openPrefix(broker.port, prefix, { lastEventId: first.lastEventId });
    await publish(broker.port, `${prefix}c`, 'new');
    await second.untilEvents(1);
    assert.deepEqual(
      eventsOf(second).map(({ stream }) => stream),
      [`${prefix}c`],
    );
    // One of that name that is made anew is another.
    await deleteStream(broker.port, a);
    await publish(broker.port, a, 'anew');
    await second.untilEvents(2);
    assert.deepEqual(seqsOf(second, a), [1]);
    assert.deepEqual(notices(second), []);
    second.cut();
  });

  it('4.11 a stream that is deleted is told, and one of its name that is made anew is given from its first event', async () => {
    const prefix = freshPrefix();
    const [stream = ''] = await filled(broker.port, prefix, ['a'], 2);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(2);
    for (const round of range(1, 5)) {
      await deleteStream(broker.port, stream);
      await publishLines(broker.port, stream, ['anew', 'again']);
      await first.untilEvents(2 + 3 * round);
    }
    assert.deepEqual(
      first.events.map(({ type }) => type),
      [...range(1, 2), ...range(1, 15)].map((_, index) =>
        index >= 2 && index % 3 === 2 ? 'stream_deleted' : 'message',
      ),
    );
    const follower = new PrefixFollower();
    follower.takeUp(first, null);
    const newest = first.events.slice(-3);
    first.cut();
    // Told of the last deletion, or not: then what it has missed cannot be known.
    const told = await openPrefix(broker.port, prefix, { lastEventId: newest[0]?.id });
    await told.untilEvents(2);
    assert.deepEqual(seqsOf(told, stream), [1, 2]);
    told.cut();
    const untold = await refusedPrefix(broker.port, prefix, { lastEventId: first.events.at(-4)?.id });
    const problem = assertProblem(untold, 410, 'resume_unavailable');
    assert.deepEqual(
      (problem as unknown as { streams: Problem[] }).streams.map((each) => [
        (each as unknown as { stream: string }).stream,
        each.reason,
      ]),
      [[stream, 'epoch_changed']],
    );
  });

  it('4.11 a stream that was deleted meanwhile refuses the resume, or is told in-band and left behind', async () => {
    const prefix = freshPrefix();
    const [a = '', b = ''] = await filled(broker.port, prefix, ['a', 'b'], 1);
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(2);
    first.cut();
    await deleteStream(broker.port, a);
    const { lastEventId } = first;
    const refusal = assertProblem(
      await refusedPrefix(broker.port, prefix, { lastEventId }),
      410,
      'resume_unavailable',
    );
    assert.equal(refusal.reason, 'epoch_changed');
    const told = await openPrefix(broker.port, prefix, { lastEventId, query: 'on_unavailable=event' });
    await publish(broker.port, b, 'more');
    await told.untilEvents(2);
    assert.deepEqual(notices(told), [['resume_unavailable', a]]);
    assert.deepEqual(seqsOf(told, b), [2]);
    told.cut();
    const after = await openPrefix(broker.port, prefix, { lastEventId: told.lastEventId });
    await publish(broker.port, b, 'more still');
    await after.untilEvents(1);
    after.cut();
  });

  it('4.11 where events of one are evicted the resume is refused, and no event is written', async () => {
    const prefix = freshPrefix();
    const [, b = ''] = await filled(broker.port, prefix, ['a', 'b'], 1);
    const tight = `${prefix}tight`;
    await createStream(broker.port, tight, { retention: { events: 2 } });
    await publish(broker.port, tight, '1');
    const first = await openPrefix(broker.port, prefix, { cursor: 'earliest' });
    await first.untilEvents(3);
    first.cut();
    await publishLines(broker.port, tight, range(2, 20).map(String));
    await publish(broker.port, b, 'more');
    const { lastEventId } = first;
    const refusal = assertProblem(
      await refusedPrefix(broker.port, prefix, { lastEventId }),
      410,
      'resume_unavailable',
    ) as unknown as { reason: string; cursor: string; streams: Record<string, unknown>[] };
    assert.equal(refusal.reason, 'evicted');
    assert.equal(refusal.cursor, lastEventId);
    assert.deepEqual(
      refusal.streams.map(({ stream, reason }) => [stream, reason]),
      [[tight, 'evicted']],
    );
    const told = await openPrefix(broker.port, prefix, { lastEventId, query: 'on_unavailable=event' });
    await told.untilEvents(2);
    assert.deepEqual(notices(told), [['resume_unavailable', tight]]);
    assert.deepEqual(seqsOf(told, b), [2]);
    await publish(broker.port, tight, '21');
    await told.untilEvents(3);
    assert.deepEqual(seqsOf(told, tight), [21]);
    told.cut();
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  assertProblem,
  createStream,
  freshStream,
  type Problem,
  publish,
  publishLines,
  readPage,
  stateOf,
} from '../support/gapless-client.js';
import { SseSubscription } from '../support/sse-client.js';

const MIB = 1024 * 1024;

/**
 * The two failures in the field that Gapless was started for, played again. The first: a send buffer that was partly
 * flushed was trusted for a resume. The second: a cursor whose successors were evicted was served from what was left.
 */
describeOnEdges('seen in the field', [], (broker) => {
  /** Events 1..118 are small; 119..140 are large enough that the kernel cannot take them all from a stalled reader. */
  function backlogEvent(seq: number): string {
    return `event ${seq} `.padEnd(seq > 118 ? 600_000 : 100, '.');
  }

  async function publishBacklog(stream: string, first: number, last: number): Promise<string> {
    let epoch = '';
    for (const seq of range(first, last)) ({ epoch } = await publish(broker.port, stream, backlogEvent(seq)));
    return epoch;
  }

  it('a slow consumer that breaks at 118 with 119 to 140 in the send buffer gets 119 next, not 124 (I2)', async () => {
    const stream = freshStream('slow-consumer');
    await createStream(broker.port, stream, { retention: { bytes: 32 * MIB } });
    await publishBacklog(stream, 1, 100);

    const slow = await SseSubscription.open(broker.port, stream, {
      cursor: 'earliest',
      onEvent: (event, subscription) => {
        if (event.data.startsWith('event 118 ')) subscription.stall();
      },
    });
    const epoch = await publishBacklog(stream, 101, 118);
    await slow.untilSeq(118);
    // 13 MB written towards a reader that reads no more: some flushed into the kernel, some of a frame, the rest not.
    await publishBacklog(stream, 119, 140);
    slow.cut();
    assert.equal(slow.lastEventId, cursorOf(epoch, 118));
    assert.deepEqual(slow.seqs, range(1, 118));

    const publishing = publishBacklog(stream, 141, 150);
    const resumed = await SseSubscription.open(broker.port, stream, { lastEventId: slow.lastEventId });
    await publishing;
    await resumed.untilSeq(150);
    assert.deepEqual(resumed.seqs, range(119, 150));
    for (const [index, data] of resumed.data.entries()) assert.ok(data === backlogEvent(119 + index));
    resumed.cut();
  });

  it('the same break at every event of the backlog, with a publisher that does not stop, never skips one (I2)', async () => {
    const stream = freshStream('every-break');
    await createStream(broker.port, stream, { retention: { bytes: 32 * MIB } });
    const epoch = await publishBacklog(stream, 1, 140);
    let head = 140;
    for (const breakAt of range(118, 139)) {
      const slow = await SseSubscription.open(broker.port, stream, {
        lastEventId: cursorOf(epoch, 117),
        onEvent: (event, subscription) => {
          if (event.id === cursorOf(epoch, breakAt)) subscription.cut();
        },
      });
      assert.equal(await slow.untilEnded(), 'broken');
      assert.deepEqual(slow.seqs, range(118, breakAt));
      const publishing = publish(broker.port, stream, `event ${head + 1} `);
      const resumed = await SseSubscription.open(broker.port, stream, { lastEventId: slow.lastEventId });
      head = (await publishing).last;
      await resumed.untilSeq(head);
      assert.deepEqual(resumed.seqs, range(breakAt + 1, head));
      resumed.cut();
    }
  });

  it('a cursor E.1042 whose successors 1043 to 1051 were evicted is refused, never served from 1052 onward (I2)', async () => {
    const stream = freshStream('evicted-window');
    await createStream(broker.port, stream, { retention: { events: 1_050 } });
    const first = await publishLines(
      broker.port,
      stream,
      range(1, 1_042).map((seq) => `E_${seq}`),
    );
    const client = await SseSubscription.open(broker.port, stream, { cursor: 'earliest', keepEvents: false });
    await client.untilSeq(1_042);
    client.cut();
    const cursor = client.lastEventId;
    assert.equal(cursor, cursorOf(first.epoch, 1_042));

    let { floor, head } = await stateOf(broker.port, stream);
    while (floor <= 1_043) {
      await publish(broker.port, stream, `E_${head + 1}`);
      ({ floor, head } = await stateOf(broker.port, stream));
    }
    const earliest = cursorOf(first.epoch, floor - 1);

    const plain = await SseSubscription.ask(broker.port, stream, { lastEventId: cursor });
    const problem = assertProblem(await plain.refusal(), 410, 'resume_unavailable');
    assert.deepEqual(
      [problem.reason, problem.cursor, problem.floor, problem.head],
      ['evicted', cursor, floor, head],
    );
    assert.equal(problem.earliest, earliest);
    assert.equal(plain.eventCount, 0);

    const asEvent = await SseSubscription.open(broker.port, stream, {
      lastEventId: cursor,
      query: 'on_unavailable=event',
    });
    assert.equal(await asEvent.untilEnded(), 'end');
    assert.deepEqual(
      asEvent.events.map(({ type }) => type),
      ['resume_unavailable'],
    );
    assert.equal((JSON.parse(asEvent.data[0] ?? '') as Problem).earliest, earliest);

    assertProblem(await readPage(broker.port, stream, `cursor=${cursor}`), 410, 'resume_unavailable');
  });

  it('the boundary is exact: C = floor - 2 is refused, C = floor - 1 is served from the floor (I2)', async () => {
    const stream = freshStream('boundary');
    await createStream(broker.port, stream, { retention: { events: 50 } });
    for (const seq of range(1, 400)) {
      await publish(broker.port, stream, `event ${seq}`);
      if (seq % 13 !== 0) continue;
      const { epoch, floor, head } = await stateOf(broker.port, stream);
      if (floor < 3) continue;
      const below = await SseSubscription.ask(broker.port, stream, {
        lastEventId: cursorOf(epoch, floor - 2),
      });
      assert.equal(below.status, 410, `C = ${floor - 2}, floor ${floor}`);
      const at = await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, floor - 1) });
      await at.untilSeq(head);
      assert.deepEqual(at.seqs, range(floor, head));
      at.cut();
    }
  });
});

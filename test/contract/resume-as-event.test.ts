import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import {
  assertProblem,
  createStream,
  freshStream,
  type Problem,
  publish,
  stateOf,
} from '../support/gapless-client.js';
import { SseSubscription } from '../support/sse-client.js';

const OTHER_EPOCH = 'zzzzzzzzzz';
const AS_EVENT = 'on_unavailable=event';

describeOnEdges('4.5 the refusal as an event', [], (broker) => {
  async function evicted(): Promise<{ stream: string; epoch: string; floor: number; head: number }> {
    const stream = freshStream('as-event');
    await createStream(broker.port, stream, { retention: { events: 20 } });
    for (const seq of range(1, 75)) await publish(broker.port, stream, `event ${seq}`);
    const { epoch, floor, head } = await stateOf(broker.port, stream);
    assert.ok(floor > 20, `floor ${floor}`);
    return { stream, epoch, floor, head };
  }

  it('4.5 it is 200, one event resume_unavailable with the same JSON and the id of the head, then the end', async () => {
    const { stream, epoch, floor, head } = await evicted();
    const cursors = {
      evicted: cursorOf(epoch, 3),
      ahead_of_head: cursorOf(epoch, head + 9),
      epoch_changed: cursorOf(OTHER_EPOCH, 3),
    };
    for (const [reason, lastEventId] of Object.entries(cursors)) {
      const subscription = await SseSubscription.open(broker.port, stream, { lastEventId, query: AS_EVENT });
      assert.equal(await subscription.untilEnded(), 'end');
      assert.match(subscription.header('content-type') ?? '', /^text\/event-stream/);
      const [event, ...others] = subscription.events;
      assert.equal(others.length, 0, 'an event besides the refusal');
      assert.equal(event?.type, 'resume_unavailable');
      assert.equal(event?.id, cursorOf(epoch, head));
      assert.equal(subscription.lastEventId, cursorOf(epoch, head));

      const problem = JSON.parse(event?.data ?? '') as Problem;
      const plain = await SseSubscription.ask(broker.port, stream, { lastEventId });
      assert.deepEqual(problem, (await plain.refusal()).json());
      assert.deepEqual([problem.reason, problem.floor, problem.head], [reason, floor, head]);
    }
  });

  it('4.5 coming back with its id, what comes after the named head follows without a hole', async () => {
    const { stream, epoch, head } = await evicted();
    const refused = await SseSubscription.open(broker.port, stream, {
      lastEventId: cursorOf(epoch, 1),
      query: AS_EVENT,
    });
    await refused.untilEnded();
    for (const seq of range(head + 1, head + 5)) await publish(broker.port, stream, `event ${seq}`);
    const back = await SseSubscription.open(broker.port, stream, {
      lastEventId: refused.lastEventId,
      cursor: cursorOf(epoch, 1),
      query: AS_EVENT,
    });
    await back.untilSeq(head + 5);
    assert.deepEqual(back.seqs, range(head + 1, head + 5));
    back.cut();
  });

  it('4.5 a cursor that works is served as ever', async () => {
    const { stream, epoch, floor, head } = await evicted();
    const subscription = await SseSubscription.open(broker.port, stream, {
      lastEventId: cursorOf(epoch, floor - 1),
      query: AS_EVENT,
    });
    await subscription.untilSeq(head);
    assert.deepEqual(subscription.seqs, range(floor, head));
    assert.ok(subscription.events.every(({ type }) => type === 'message'));
    subscription.cut();
  });

  it('4.5 a malformed cursor is 400 all the same', async () => {
    const { stream } = await evicted();
    for (const options of [{ lastEventId: 'nonsense' }, { cursor: '' }, { cursor: 'aaaaaaaaaa.01' }]) {
      const subscription = await SseSubscription.ask(broker.port, stream, { ...options, query: AS_EVENT });
      assertProblem(await subscription.refusal(), 400, 'malformed');
    }
  });

  it('4.5 a stream that does not exist is created for this answer, and can be followed from its id', async () => {
    const stream = freshStream('absent');
    const options = { lastEventId: cursorOf(OTHER_EPOCH, 5), query: AS_EVENT };
    const refused = await SseSubscription.open(broker.port, stream, options);
    assert.equal(await refused.untilEnded(), 'end');
    const { epoch, head } = await stateOf(broker.port, stream);
    const problem = JSON.parse(refused.data[0] ?? '') as Problem;
    assert.deepEqual([problem.reason, problem.epoch, problem.head], ['epoch_changed', epoch, head]);
    assert.equal(refused.lastEventId, cursorOf(epoch, head));
    await publish(broker.port, stream, 'one');
    const back = await SseSubscription.open(broker.port, stream, { lastEventId: refused.lastEventId });
    await back.untilEvents(1);
    assert.deepEqual(back.data, ['one']);
    back.cut();
  });

  it('4.5 who does not ask for it gets the 410: `resume_unavailable` never reaches a client that may ignore it', async () => {
    const { stream, epoch } = await evicted();
    const subscription = await SseSubscription.ask(broker.port, stream, { lastEventId: cursorOf(epoch, 1) });
    assert.equal((await subscription.refusal()).status, 410);
  });
});

describe('4.5 with --no-auto-create', () => {
  const broker = useBroker('--no-auto-create');

  it('4.5 a stream that does not exist is 404 for those who ask for the event too', async () => {
    const options = { lastEventId: cursorOf(OTHER_EPOCH, 5), query: AS_EVENT };
    const subscription = await SseSubscription.ask(broker.port, freshStream('absent'), options);
    assertProblem(await subscription.refusal(), 404, 'stream_not_found');
  });
});

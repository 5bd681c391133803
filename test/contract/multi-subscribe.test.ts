import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BrokerProcess, describeOnEdges, useBroker } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  type PageEvent,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { SseSubscription, type SubscribeOptions } from '../support/sse-client.js';

interface MultiEvent extends PageEvent {
  stream: string;
}

const SEVERAL = '';

function multiEvents(subscription: SseSubscription): MultiEvent[] {
  const own = ({ type }: { type: string }) => !/^(stream_|resume_)/.test(type);
  return subscription.events.filter(own).map(({ data }) => JSON.parse(data) as MultiEvent);
}

/** The seqs that came of one stream, in the order in which they came. */
function seqsOf(subscription: SseSubscription, stream: string): number[] {
  return multiEvents(subscription)
    .filter((event) => event.stream === stream)
    .map(({ id }) => seqOf(id));
}

describeOnEdges('4.10 several streams over one connection', [], (broker) => {
  async function filled(count: number, events = 3): Promise<{ streams: string[]; epochs: string[] }> {
    const streams = range(1, count).map((index) => freshStream(`multi-${index}`));
    const epochs: string[] = [];
    for (const stream of streams) {
      const lines = range(1, events).map((seq) => `${stream} ${seq}`);
      epochs.push((await publishLines(broker.port, stream, lines)).epoch);
    }
    return { streams, epochs };
  }

  const open = (options: SubscribeOptions) => SseSubscription.open(broker.port, SEVERAL, options);
  const ask = (options: SubscribeOptions) => SseSubscription.ask(broker.port, SEVERAL, options);

  it('4.10 gives the events of all, each with its stream and its own id, under ids that browsers send', async () => {
    const { streams, epochs } = await filled(3);
    const subscription = await open({ streams, cursor: 'earliest' });
    await publish(broker.port, streams[1] as string, 'a\nb', MEDIA_TYPES.text, { 'Gapless-Event': 'tick' });
    await publish(broker.port, streams[2] as string, Buffer.from([0, 255]), MEDIA_TYPES.binary);
    await subscription.untilEvents(11);
    for (const stream of streams.slice(0, 1)) assert.deepEqual(seqsOf(subscription, stream), range(1, 3));
    assert.deepEqual(seqsOf(subscription, streams[1] as string), range(1, 4));
    const shown = multiEvents(subscription);
    assert.deepEqual(
      shown.find(({ type }) => type === 'tick'),
      { stream: streams[1], id: cursorOf(epochs[1] as string, 4), type: 'tick', data: 'a\nb' },
    );
    assert.deepEqual(
      shown.find(({ encoding }) => encoding === 'base64'),
      {
        stream: streams[2],
        id: cursorOf(epochs[2] as string, 4),
        type: 'message',
        data: 'AP8=',
        encoding: 'base64',
      },
    );
    assert.equal(subscription.events.find(({ type }) => type === 'tick')?.carriesId, true);
    const ids = subscription.events.map(({ id }) => id);
    assert.equal(new Set(ids).size, 11);
    for (const id of ids) assert.match(id, /^m[A-Za-z0-9_-]{1,126}$/);
    subscription.cut();
  });

  it('4.10 every id resumes all streams: cut after any event, nothing is missed and nothing comes twice (I2)', async () => {
    const { streams } = await filled(3, 4);
    const whole = await open({ streams, cursor: 'earliest' });
    await whole.untilEvents(12);
    whole.cut();
    const all = whole.events.map(({ data }) => data);
    for (const [index, { id }] of whole.events.entries()) {
      const rest = await open({ streams, lastEventId: id });
      await publish(broker.port, streams[0] as string, `after ${index}`);
      await rest.until('all that is left and one more', () => {
        return rest.data.some((data) => data.includes(`"after ${index}"`));
      });
      const seen = [...all.slice(0, index + 1), ...rest.data].map((data) => JSON.parse(data) as MultiEvent);
      for (const stream of streams) {
        const seqs = seen.filter((event) => event.stream === stream).map((event) => seqOf(event.id));
        assert.deepEqual(seqs.slice(0, 4), range(1, 4), `${stream}, cut after event ${index}`);
        assert.deepEqual(seqs, range(1, seqs.length));
      }
      rest.cut();
    }
  });

  it('4.10 one that joins live and breaks before its first event misses nothing', async () => {
    const { streams } = await filled(2);
    const live = await open({ streams });
    const primed = await live.untilPrimed();
    live.cut();
    for (const stream of streams) await publish(broker.port, stream, 'while away');
    const back = await open({ streams, lastEventId: primed });
    await back.untilEvents(2);
    for (const stream of streams) assert.deepEqual(seqsOf(back, stream), [4]);
    back.cut();
  });

  it('4.10 where one is evicted the resume is refused with that one, and no event is written', async () => {
    const { streams } = await filled(1);
    const tight = freshStream('tight');
    await createStream(broker.port, tight, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, tight, ['1']);
    const both = [...streams, tight];
    const live = await open({ streams: both });
    const id = await live.untilPrimed();
    live.cut();
    await publishLines(broker.port, tight, range(2, 20).map(String));
    const { floor, head } = await stateOf(broker.port, tight);
    const back = await ask({ streams: both, lastEventId: id });
    const problem = assertProblem(await back.refusal(), 410, 'resume_unavailable');
    assert.deepEqual([problem.reason, problem.cursor], ['evicted', id]);
    const earliest = cursorOf(epoch, floor - 1);
    assert.deepEqual(problem.streams, [
      { stream: tight, reason: 'evicted', cursor: cursorOf(epoch, 1), epoch, floor, head, earliest },
    ]);

    const told = await open({ streams: both, lastEventId: id, query: 'on_unavailable=event' });
    await publish(broker.port, streams[0] as string, 'goes on');
    await publish(broker.port, tight, 'goes on');
    await told.untilEvents(3);
    assert.equal(told.events[0]?.type, 'resume_unavailable');
    const { stream, reason } = JSON.parse(told.events[0]?.data ?? '') as { stream: string; reason: string };
    assert.deepEqual([stream, reason], [tight, 'evicted']);
    assert.deepEqual(seqsOf(told, tight), [head + 1]);
    assert.deepEqual(seqsOf(told, streams[0] as string), [4]);
    told.cut();
  });

  it('4.10 a stream that was made anew refuses the cursor, and so do other streams and another order (I3)', async () => {
    const { streams } = await filled(2);
    const live = await open({ streams });
    const id = await live.untilPrimed();
    live.cut();
    const other = (await filled(1)).streams[0] as string;
    for (const asked of [[...streams].reverse(), [streams[0] as string, other]]) {
      const back = await ask({ streams: asked, lastEventId: id });
      assert.equal(assertProblem(await back.refusal(), 410, 'resume_unavailable').reason, 'epoch_changed');
    }
    await deleteStream(broker.port, streams[0] as string);
    const gone = await ask({ streams, lastEventId: id });
    assert.equal(assertProblem(await gone.refusal(), 410, 'resume_unavailable').reason, 'epoch_changed');
    assert.equal((await request(broker.port, { path: `/v1/streams/${streams[0]}/state` })).status, 404);
    await publish(broker.port, streams[0] as string, 'anew');
    const anew = await ask({ streams, lastEventId: id });
    const problem = assertProblem(await anew.refusal(), 410, 'resume_unavailable');
    assert.equal((problem.streams as unknown[]).length, 2);
  });

  it('4.10 what cannot be a request for several is 400', async () => {
    const { streams } = await filled(2);
    const bad: [SubscribeOptions, string][] = [
      [{ streams: [] }, 'invalid_query'],
      [{ streams: [streams[0] as string, streams[0] as string] }, 'invalid_query'],
      [{ streams: range(1, 17).map((n) => `s${n}`) }, 'invalid_query'],
      [{ streams: ['a%20b'] }, 'invalid_stream_name'],
      [{ streams, query: 'subscriber=ada' }, 'invalid_query'],
      [{ streams, lastEventId: 'abcdefghij.3' }, 'malformed'],
      [{ streams, cursor: 'mAAAAAAAAAA' }, 'malformed'],
      [{ streams, cursor: '' }, 'malformed'],
    ];
    for (const [options, code] of bad) {
      assertProblem(await (await ask(options)).refusal(), 400, code);
    }
  });

  it('4.10 one that is closed, or deleted, is told, and the others go on; when all have ended so does the answer', async () => {
    const { streams, epochs } = await filled(3);
    const [closed = '', deleted = '', last = ''] = streams;
    const subscription = await open({ streams, cursor: 'earliest' });
    await subscription.untilEvents(9);
    await closeStream(broker.port, closed);
    await subscription.untilEvents(10);
    await deleteStream(broker.port, deleted);
    await subscription.untilEvents(11);
    await publish(broker.port, last, 'goes on');
    await subscription.untilEvents(12);
    assert.deepEqual(seqsOf(subscription, last), range(1, 4));
    const ended = subscription.events.filter(({ type }) => type.startsWith('stream_'));
    assert.deepEqual(
      ended.map(({ type, data }) => [type, JSON.parse(data)]),
      [
        ['stream_closed', { stream: closed, cursor: cursorOf(epochs[0] as string, 3) }],
        ['stream_deleted', { stream: deleted, cursor: cursorOf(epochs[1] as string, 3) }],
      ],
    );
    await closeStream(broker.port, last);
    assert.equal(await subscription.untilEnded(), 'end');
    const again = await ask({ streams: [closed, last] });
    assert.equal((await again.refusal()).status, 204);
  });

  it('4.10 ?types= leaves out the others, and the position passes over them', async () => {
    const { streams } = await filled(2);
    const subscription = await open({ streams, query: 'types=tick' });
    await publish(broker.port, streams[0] as string, 'no');
    await publish(broker.port, streams[1] as string, 'yes', MEDIA_TYPES.text, { 'Gapless-Event': 'tick' });
    await subscription.untilEvents(1);
    assert.deepEqual(
      multiEvents(subscription).map(({ data }) => data),
      ['yes'],
    );
    subscription.cut();
  });

  it('4.10 a reader that stalls goes on from where its socket stopped, in every stream (I1, I7)', async () => {
    const streams = range(1, 3).map((index) => freshStream(`stalled-${index}`));
    for (const stream of streams) {
      await createStream(broker.port, stream, { retention: { bytes: 16 * 1024 * 1024 } });
    }
    const subscription = await open({ streams });
    await subscription.untilPrimed();
    subscription.stall();
    const connection = await HttpConnection.open(broker.port);
    const lines = range(1, 4).map(() => 'x'.repeat(64 * 1024));
    for (const _ of range(1, 20)) for (const stream of streams) await publishLines(connection, stream, lines);
    connection.destroy();
    subscription.unstall();
    await subscription.untilEvents(240);
    for (const stream of streams) assert.deepEqual(seqsOf(subscription, stream), range(1, 80));
    subscription.cut();
  });

  it('4.6 where eviction overtakes one of them it is told, with the id to go on from, and the answer ends (I2)', async () => {
    const calm = freshStream('calm');
    const flooded = freshStream('flooded');
    await createStream(broker.port, flooded, { retention: { bytes: 512 * 1024 } });
    const streams = [calm, flooded];
    const subscription = await open({ streams, query: 'on_unavailable=event' });
    await subscription.untilPrimed();
    subscription.stall();
    const connection = await HttpConnection.open(broker.port);
    const lines = range(1, 8).map(() => 'x'.repeat(32 * 1024));
    for (const _ of range(1, 120)) await publishLines(connection, flooded, lines);
    connection.destroy();
    await publish(broker.port, calm, 'one');
    subscription.unstall();
    assert.equal(await subscription.untilEnded(), 'end');
    const refusal = JSON.parse(subscription.events.at(-1)?.data ?? '') as Record<string, unknown>;
    assert.deepEqual([refusal.stream, refusal.reason], [flooded, 'evicted']);
    const seen = seqsOf(subscription, flooded);
    assert.deepEqual(seen, range(1, seen.length));
    // It may have been overtaken in the middle of the flood: what came after that is gone too, and told.
    const query = 'on_unavailable=event';
    const back = await open({ streams, lastEventId: subscription.lastEventId, query });
    const { last } = await publish(broker.port, flooded, 'goes on');
    await publish(broker.port, calm, 'two');
    await back.until('both', () => [calm, flooded].every((stream) => seqsOf(back, stream).length > 0));
    const again = back.events.find(({ type }) => type === 'resume_unavailable');
    const { head } = (again === undefined ? refusal : JSON.parse(again.data)) as { head: number };
    assert.equal(seqsOf(back, flooded)[0], head + 1);
    assert.ok(seqsOf(back, flooded).includes(last));
    await back.until('all of the calm one', () => seqsOf(back, calm).at(-1) === 2);
    assert.deepEqual([...seqsOf(subscription, calm), ...seqsOf(back, calm)], [1, 2]);
    back.cut();
  });

  it('4.10 subscribers are counted in each stream, and gone with the connection', async () => {
    const { streams } = await filled(2);
    const subscription = await open({ streams });
    await subscription.untilPrimed();
    for (const stream of streams) assert.equal((await stateOf(broker.port, stream)).subscribers, 1);
    subscription.cut();
    for (const stream of streams) {
      await eventually('nobody to read it', async () => {
        return (await stateOf(broker.port, stream)).subscribers === 0;
      });
    }
  });

  it('2.2 without text/event-stream it is the list, as ever', async () => {
    const response = await request(broker.port, { path: '/v1/streams?limit=1' });
    assert.equal(response.header('content-type'), 'application/json');
    const refused = await request(broker.port, { path: '/v1/streams', headers: { Accept: 'image/png' } });
    assertProblem(refused, 406, 'not_acceptable');
  });
});

describe('4.10 signs of life', () => {
  const broker = useBroker('--heartbeat-interval-ms', '50');

  it('4.10 what a filter leaves out is passed over with an id, of all streams together', async () => {
    const streams = [freshStream('a'), freshStream('b')];
    const options = { streams, query: 'types=tick' };
    const subscription = await SseSubscription.open(broker.port, SEVERAL, options);
    const primed = await subscription.untilPrimed();
    for (const stream of streams) await publish(broker.port, stream, 'left out');
    await subscription.until('the id to move twice', () => new Set(subscription.idsWithoutEvent).size === 3);
    assert.notEqual(subscription.lastEventId, primed);
    await subscription.until('a comment', () => subscription.comments > 0);
    subscription.cut();
    const back = await SseSubscription.open(broker.port, SEVERAL, {
      ...options,
      lastEventId: subscription.lastEventId,
      query: '',
    });
    await publish(broker.port, streams[0] as string, 'new');
    await back.untilEvents(1);
    assert.deepEqual([seqsOf(back, streams[0] as string), seqsOf(back, streams[1] as string)], [[2], []]);
    back.cut();
  });
});

describe('10 draining several streams', () => {
  it('10 the answer ends once, with a `retry:` and a proper last chunk', async () => {
    const broker = await BrokerProcess.start('--drain-ms', '1s');
    const streams = [freshStream('a'), freshStream('b')];
    const subscriptions = await Promise.all(
      range(1, 20).map(() => SseSubscription.open(broker.port, SEVERAL, { streams })),
    );
    for (const stream of streams) await publish(broker.port, stream, 'one');
    await Promise.all(subscriptions.map((subscription) => subscription.untilEvents(2)));
    broker.signal('SIGTERM');
    for (const subscription of subscriptions) {
      assert.equal(await subscription.untilEnded(), 'end');
      assert.equal(subscription.retries.length, 2);
    }
    assert.deepEqual(await broker.untilExit(), { code: 0, signal: null });
    assert.deepEqual(broker.errors, []);
  });
});

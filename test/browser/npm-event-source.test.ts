import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EventSource } from 'eventsource';
import { useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  closeStream,
  createStream,
  freshStream,
  type Problem,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';

interface Following {
  source: EventSource;
  events: { type: string; data: string; id: string }[];
  opens: number;
  errorCodes: (number | undefined)[];
}

describe('EventSource of npm', () => {
  const broker = useBroker('--retry-ms', '50');
  let proxy: TcpProxy;

  before(async () => {
    proxy = await TcpProxy.start(broker.port);
  });

  after(() => proxy?.stop());

  function follow(stream: string, query = ''): Following {
    const source = new EventSource(`http://127.0.0.1:${proxy.port}/v1/streams/${stream}${query}`);
    const following: Following = { source, events: [], opens: 0, errorCodes: [] };
    for (const type of ['message', 'resume_unavailable', 'stream_closed']) {
      source.addEventListener(type, (event) => {
        following.events.push({ type: event.type, data: event.data, id: event.lastEventId });
      });
    }
    source.addEventListener('open', () => following.opens++);
    source.addEventListener('error', (error) => following.errorCodes.push(error.code));
    return following;
  }

  it('resumes without a gap or duplicate when the network cuts it, again and again, in the middle of frames', async () => {
    const stream = freshStream('cut');
    const { epoch } = await publishLines(
      broker.port,
      stream,
      range(1, 50).map((seq) => `event ${seq}`),
    );
    proxy.cutAfterBytes(1_777);
    const following = follow(stream, '?cursor=earliest');
    for (const seq of range(51, 120)) await publish(broker.port, stream, `event ${seq}`);
    await eventually(
      'most events over several connections',
      () => following.events.length >= 100 && following.opens >= 3,
    );
    proxy.cutAfterBytes(Number.POSITIVE_INFINITY);
    proxy.cutAll();
    await publish(broker.port, stream, 'event 121');
    await eventually('the last event', () => following.events.at(-1)?.data === 'event 121');
    assert.deepEqual(
      following.events.map(({ id }) => id),
      range(1, 121).map((seq) => cursorOf(epoch, seq)),
    );
    assert.deepEqual(
      following.events.map(({ data }) => data),
      range(1, 121).map((seq) => `event ${seq}`),
    );
    following.source.close();
  });

  it('sees a 410 as a final error with its code', async () => {
    const stream = freshStream('gone');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 20).map(String));
    const following = follow(stream, `?cursor=${cursorOf(epoch, 1)}`);
    await eventually('readyState 2', () => following.source.readyState === EventSource.CLOSED);
    assert.deepEqual(following.errorCodes, [410]);
    assert.deepEqual(following.events, []);
  });

  it('with on_unavailable=event gets floor and head, and then carries on from the head without a hole', async () => {
    const stream = freshStream('as-event');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 20).map(String));
    const { floor, head } = await stateOf(broker.port, stream);
    const following = follow(stream, `?cursor=${cursorOf(epoch, 1)}&on_unavailable=event`);
    await eventually('it to come back', () => following.events.length >= 1 && following.opens >= 2);
    await publishLines(broker.port, stream, ['event 21', 'event 22']);
    await eventually('the last event', () => following.events.at(-1)?.data === 'event 22');
    assert.deepEqual(
      following.events.map(({ type }) => type),
      ['resume_unavailable', 'message', 'message'],
    );
    const problem = JSON.parse(following.events[0]?.data ?? '') as Problem;
    assert.deepEqual([problem.reason, problem.floor, problem.head], ['evicted', floor, head]);
    assert.deepEqual(
      following.events.map(({ id }) => id),
      [20, 21, 22].map((seq) => cursorOf(epoch, seq)),
    );
    following.source.close();
  });

  it('stops for good after stream_closed', async () => {
    const stream = freshStream('closed');
    await publishLines(broker.port, stream, ['one', 'two']);
    const following = follow(stream, '?cursor=earliest');
    await eventually('both events', () => following.events.length === 2);
    await closeStream(broker.port, stream);
    await eventually('readyState 2', () => following.source.readyState === EventSource.CLOSED);
    assert.deepEqual(
      following.events.map(({ type }) => type),
      ['message', 'message', 'stream_closed'],
    );
  });
});

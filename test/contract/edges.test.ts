import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { GapChecker } from '../support/gap-checker.js';
import {
  createStream,
  deleteStream,
  freshStream,
  publish,
  putStream,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { Publisher } from '../support/publisher.js';
import { Reader } from '../support/reader.js';
import { SseSubscription } from '../support/sse-client.js';

/** With so many connections the kernel leaves none of three edges out (the odds are one in 10^11). */
const CONNECTIONS = 64;

describe('several edges are one broker', () => {
  const broker = useBroker('--threads', '3');

  function openMany(stream: string): Promise<SseSubscription[]> {
    return Promise.all(range(1, CONNECTIONS).map(() => SseSubscription.open(broker.port, stream)));
  }

  it('4 a publisher on one edge reaches the subscribers of all, each of them with every event in order (I1)', async () => {
    const stream = freshStream('all');
    const checker = new GapChecker();
    const readers = range(1, CONNECTIONS).map((index) => {
      return new Reader({ port: broker.port, stream, name: `reader-${index}`, checker });
    });
    const subscriptions = await Promise.all(readers.map((reader) => reader.connect()));
    const publisher = new Publisher({ port: broker.port, stream, name: 'publisher', checker });
    for (const round of range(1, 300)) await publisher.publish((round % 12) + 1);
    for (const [index, subscription] of subscriptions.entries()) {
      await subscription?.untilSeq(publisher.acked?.last ?? 0);
      readers[index]?.caughtUp();
      subscription?.cut();
    }
    assert.equal(checker.eventCount, publisher.eventCount * CONNECTIONS);
    checker.assertClean();
    publisher.close();
  });

  it('4 no wake-up is lost: each of 300 single events reaches idle subscribers on every edge before the next', async () => {
    const stream = freshStream('wake');
    const subscriptions = await openMany(stream);
    await Promise.all(subscriptions.map((subscription) => subscription.untilPrimed()));
    const publisher = await HttpConnection.open(broker.port);
    for (const seq of range(1, 300)) {
      await publish(publisher, stream, `event ${seq}`);
      await Promise.all(subscriptions.map((subscription) => subscription.untilSeq(seq)));
    }
    for (const subscription of subscriptions) {
      assert.deepEqual(subscription.seqs, range(1, 300));
      subscription.cut();
    }
    publisher.destroy();
  });

  it('4 publishers on every edge: all subscribers see one and the same order (I3, I6)', async () => {
    const stream = freshStream('one-order');
    const checker = new GapChecker();
    const publishers = range(1, 12).map((index) => {
      return new Publisher({ port: broker.port, stream, name: `publisher-${index}`, checker });
    });
    const readers = range(1, CONNECTIONS).map((index) => {
      return new Reader({ port: broker.port, stream, name: `reader-${index}`, checker });
    });
    const subscriptions = await Promise.all(readers.map((reader) => reader.connect()));
    await Promise.all(
      publishers.map(async (publisher) => {
        for (const round of range(1, 60)) await publisher.publish((round % 5) + 1);
      }),
    );
    const { head } = await stateOf(broker.port, stream);
    for (const [index, subscription] of subscriptions.entries()) {
      await subscription?.untilSeq(head);
      readers[index]?.caughtUp();
      subscription?.cut();
    }
    checker.assertClean();
    for (const publisher of publishers) publisher.close();
  });

  it('2.2 subscribers are counted over all edges', async () => {
    const stream = freshStream('counted');
    const subscriptions = await openMany(stream);
    assert.equal((await stateOf(broker.port, stream)).subscribers, CONNECTIONS);
    for (const subscription of subscriptions) subscription.cut();
  });

  it('2.1 what one edge creates or deletes is so on every edge as soon as it is answered', async () => {
    for (let round = 0; round < 20; round++) {
      const stream = freshStream('everywhere');
      const path = `/v1/streams/${stream}/state`;
      await createStream(broker.port, stream, { retention: { events: 7 } });
      const again = await Promise.all(
        range(1, 8).map(() => putStream(broker.port, stream, { retention: { events: 7 } })),
      );
      assert.ok(again.every(({ status }) => status === 200));
      const states = await Promise.all(range(1, 8).map(() => stateOf(broker.port, stream)));
      assert.equal(new Set(states.map(({ epoch }) => epoch)).size, 1);
      await deleteStream(broker.port, stream);
      const gone = await Promise.all(range(1, 8).map(() => request(broker.port, { path })));
      assert.ok(gone.every(({ status }) => status === 404));
    }
  });

  it('2.1 of many that create one stream at once exactly one is answered 201', async () => {
    for (let round = 0; round < 10; round++) {
      const stream = freshStream('created-once');
      const answers = await Promise.all(range(1, 16).map(() => putStream(broker.port, stream, {})));
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [...range(1, 15).map(() => 200), 201]);
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BrokerProcess } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  createStream,
  deleteStream,
  freshStream,
  publishLines,
  publishRequest,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { ackedOf, acknowledge, askAcknowledgement } from '../support/named-subscriber.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { startBroker, startBrokers } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';
import { LiveSocket } from '../support/websocket-client.js';

const as = (name: string) => ({ query: `subscriber=${name}` });

describe('named subscribers of brokers that share a log', { skip: NATS_SKIP }, () => {
  it('4.8, 7 one that joined here, acknowledged there, and comes back elsewhere is given what it has not acknowledged (I2)', async (context) => {
    const nats = await NatsServer.start(context);
    const brokers = await startBrokers(context, nats, 3);
    const [a, b, c] = brokers as [BrokerProcess, BrokerProcess, BrokerProcess];
    const stream = freshStream('named.with.dots');
    const { epoch } = await publishLines(a.port, stream, range(1, 9).map(String));
    const first = await SseSubscription.open(a.port, stream, { cursor: 'earliest', ...as('ada.b') });
    await first.untilEvents(9);
    // Each at another broker than the one before, at once.
    const ports = brokers.map(({ port }) => port);
    for (const [index, seq] of [3, 1, 4, 5].entries()) {
      const cursor = cursorOf(epoch, seq);
      const acked = await acknowledge(ports[index % 3] ?? 0, stream, 'ada.b', cursor);
      assert.equal(acked, cursorOf(epoch, Math.max(3, seq)));
    }
    await Promise.all([a.kill(), b.kill()]);
    const back = await SseSubscription.open(c.port, stream, as('ada.b'));
    await back.untilEvents(4);
    assert.deepEqual(back.seqs, range(6, 9));
    await acknowledge(c.port, stream, 'ada.b', cursorOf(epoch, 7));
    await c.kill();

    const fresh = await startBroker(context, nats);
    assert.deepEqual(await ackedOf(fresh.port, stream), { 'ada.b': cursorOf(epoch, 7) });
    const last = await SseSubscription.open(fresh.port, stream, as('ada.b'));
    await last.untilEvents(2);
    assert.deepEqual(last.seqs, [8, 9]);
  });

  it('5.4 a pong at one is an acknowledgement at all', async (context) => {
    const nats = await NatsServer.start(context);
    const [a, b] = await startBrokers(context, nats, 2, '--heartbeat-interval-ms', '1s');
    assert.ok(a !== undefined && b !== undefined);
    const stream = freshStream('pongs');
    const { epoch } = await publishLines(a.port, stream, ['1', '2', '3']);
    const socket = await LiveSocket.open(a.port, stream, {
      query: `subscriber=ada&cursor=${cursorOf(epoch, 0)}`,
    });
    await eventually('the other to know', async () => {
      const acked = await ackedOf(b.port, stream);
      return acked.ada === cursorOf(epoch, 3) ? true : undefined;
    });
    socket.cut();
  });

  it('7, 2.3 what is forgotten at one is not there at another; they go with their stream', async (context) => {
    const nats = await NatsServer.start(context);
    const [a = 0, b = 0] = (await startBrokers(context, nats, 2)).map(({ port }) => port);
    const stream = freshStream('forgotten');
    const { epoch } = await publishLines(a, stream, ['1']);
    for (const round of range(1, 10)) {
      const name = `ada-${round}`;
      (await SseSubscription.open(a, stream, as(name))).cut();
      const path = `/v1/streams/${stream}/subscribers/${name}`;
      assert.equal((await request(b, { method: 'DELETE', path })).status, 204);
      const said = await askAcknowledgement(a, stream, { subscriber: name, cursor: cursorOf(epoch, 1) });
      assertProblem(said, 404, 'subscriber_not_found');
    }
    (await SseSubscription.open(a, stream, as('bob'))).cut();
    await deleteStream(b, stream);
    await createStream(b, stream);
    const { epoch: now } = await stateOf(b, stream);
    const said = await askAcknowledgement(a, stream, { subscriber: 'bob', cursor: cursorOf(now, 0) });
    assertProblem(said, 404, 'subscriber_not_found');
    assert.deepEqual(await ackedOf(b, stream), {});
  });

  it('3.6 what one holds publishers at every broker wait for', async (context) => {
    const nats = await NatsServer.start(context);
    const [a = 0, b = 0] = (await startBrokers(context, nats, 2)).map(({ port }) => port);
    const stream = freshStream('held');
    await createStream(a, stream, { retention: { events: 10 }, overflow: 'reject' });
    (await SseSubscription.open(a, stream, as('ada'))).cut();
    let taken = 0;
    for (;;) {
      const response = await request(b, publishRequest(stream, String(taken + 1)));
      if (response.status !== 200) {
        assertProblem(response, 429, 'backpressure');
        break;
      }
      taken++;
      assert.ok(taken <= 30, 'nobody waits');
    }
    assertProblem(await request(a, publishRequest(stream, 'x')), 429, 'backpressure');
    const { epoch } = await stateOf(a, stream);
    const reader = await SseSubscription.open(b, stream, as('ada'));
    await reader.untilEvents(taken);
    assert.deepEqual(reader.seqs, range(1, taken));
    await acknowledge(b, stream, 'ada', cursorOf(epoch, taken));
    assert.equal((await request(b, publishRequest(stream, 'on'))).status, 200);
    await eventually('the other to hear of it', async () => {
      return (await request(a, publishRequest(stream, 'on'))).status === 200 ? true : undefined;
    });
  });

  it('8 while the log is away nothing is acknowledged, and then it goes on', async (context) => {
    const nats = await NatsServer.start(context);
    const [a = 0, b = 0] = (await startBrokers(context, nats, 2)).map(({ port }) => port);
    const stream = freshStream('away');
    const { epoch } = await publishLines(a, stream, range(1, 9).map(String));
    (await SseSubscription.open(a, stream, { cursor: 'earliest', ...as('ada') })).cut();
    const said = (port: number, seq: number) =>
      askAcknowledgement(port, stream, { subscriber: 'ada', cursor: cursorOf(epoch, seq) });
    assert.equal((await said(a, 2)).status, 200);
    await nats.kill();
    await eventually('it to be known', async () => {
      const response = await request(b, publishRequest(stream, '10'));
      return response.status === 503 && response.text.includes('log_unavailable') ? true : undefined;
    });
    assertProblem(await said(b, 5), 503, 'log_unavailable');
    await nats.startAgain();
    await eventually('acknowledgements to be taken again', async () => {
      return (await said(a, 4)).status === 200 ? true : undefined;
    });
    const back = await eventually('it to be let in', async () => {
      const subscription = await SseSubscription.ask(b, stream, as('ada'));
      return subscription.status === 200 ? subscription : undefined;
    });
    await back.untilSeq(9);
    assert.equal(back.seqs[0], 5);

    await nats.kill();
    nats.forgetAll();
    await nats.startAgain();
    const problem = await eventually('it to be told', async () => {
      const subscription = await SseSubscription.ask(b, stream, as('ada'));
      assert.notEqual(subscription.status, 200, 'it came as if it were new');
      const refusal = await subscription.refusal();
      return refusal.status === 410 ? assertProblem(refusal, 410, 'resume_unavailable') : undefined;
    });
    assert.deepEqual([problem.reason, problem.cursor], ['epoch_changed', cursorOf(epoch, 4)]);
  });
});

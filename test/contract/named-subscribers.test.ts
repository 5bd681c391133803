import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  createStream,
  deleteStream,
  freshStream,
  publishLines,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { askAcknowledgement, namedOf } from '../support/named-subscriber.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { LiveSocket } from '../support/websocket-client.js';

describeOnEdges('4.8 named subscribers', [], (broker) => {
  async function filled(word: string): Promise<{ stream: string; epoch: string }> {
    const stream = freshStream(word);
    const { epoch } = await publishLines(broker.port, stream, range(1, 6).map(String));
    return { stream, epoch };
  }

  const as = (name: string) => ({ query: `subscriber=${name}` });

  it('4.8 its position starts where it first joined, and is the cursor when none is given (I2)', async () => {
    const { stream, epoch } = await filled('first');
    const first = await SseSubscription.open(broker.port, stream, as('ada'));
    assert.equal(await first.untilPrimed(), cursorOf(epoch, 6));
    first.cut();
    await publishLines(broker.port, stream, ['7', '8']);
    const second = await SseSubscription.open(broker.port, stream, as('ada'));
    await second.untilEvents(2);
    assert.deepEqual(second.seqs, [7, 8]);
    // It was given them, and has not said that it has them.
    const third = await SseSubscription.open(broker.port, stream, as('ada'));
    await third.untilEvents(2);
    assert.deepEqual(third.seqs, [7, 8]);
    second.cut();
    third.cut();
  });

  it('7 an acknowledgement moves it forward only, and the answer says where it is', async () => {
    const { stream, epoch } = await filled('forward');
    (await SseSubscription.open(broker.port, stream, { cursor: 'earliest', ...as('ada') })).cut();
    assert.deepEqual(await namedOf(broker.port, stream), [
      { name: 'ada', acked: cursorOf(epoch, 0), lag: 6 },
    ]);
    for (const [seq, acked] of [
      [4, 4],
      [2, 4],
      [6, 6],
    ] as const) {
      const response = await askAcknowledgement(broker.port, stream, {
        subscriber: 'ada',
        cursor: cursorOf(epoch, seq),
      });
      assert.equal(response.status, 200, response.text);
      assert.deepEqual(response.json(), { subscriber: 'ada', acked: cursorOf(epoch, acked) });
    }
    assert.deepEqual(await namedOf(broker.port, stream), [
      { name: 'ada', acked: cursorOf(epoch, 6), lag: 0 },
    ]);
  });

  it('4.8 the Last-Event-ID that it comes back with is an acknowledgement', async () => {
    const { stream, epoch } = await filled('last-id');
    (await SseSubscription.open(broker.port, stream, { cursor: 'earliest', ...as('ada') })).cut();
    const back = await SseSubscription.open(broker.port, stream, {
      lastEventId: cursorOf(epoch, 4),
      ...as('ada'),
    });
    await back.untilEvents(2);
    assert.deepEqual(back.seqs, [5, 6]);
    back.cut();
    assert.equal((await namedOf(broker.port, stream))[0]?.acked, cursorOf(epoch, 4));
  });

  it('4.8 connections that share a name each get everything from their own cursor', async () => {
    const { stream, epoch } = await filled('shared');
    const one = await SseSubscription.open(broker.port, stream, { cursor: cursorOf(epoch, 2), ...as('ada') });
    const other = await SseSubscription.open(broker.port, stream, {
      cursor: cursorOf(epoch, 4),
      ...as('ada'),
    });
    await publishLines(broker.port, stream, ['7']);
    await Promise.all([one.untilSeq(7), other.untilSeq(7)]);
    assert.deepEqual([one.seqs, other.seqs], [range(3, 7), range(5, 7)]);
    one.cut();
    other.cut();
  });

  it('4.8 one whose next event is gone is refused as by a cursor, and is not skipped forward (I2)', async () => {
    const stream = freshStream('evicted');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, ['1']);
    (await SseSubscription.open(broker.port, stream, as('ada'))).cut();
    await publishLines(broker.port, stream, range(2, 20).map(String));
    const back = await SseSubscription.ask(broker.port, stream, as('ada'));
    const problem = assertProblem(await back.refusal(), 410, 'resume_unavailable');
    assert.deepEqual([problem.reason, problem.cursor], ['evicted', cursorOf(epoch, 1)]);
    assert.equal((await namedOf(broker.port, stream))[0]?.acked, cursorOf(epoch, 1));
    const again = await SseSubscription.open(broker.port, stream, {
      lastEventId: problem.earliest,
      ...as('ada'),
    });
    again.cut();
    assert.equal((await namedOf(broker.port, stream))[0]?.acked, problem.earliest);
  });

  it('7 what cannot be acknowledged is refused, and changes nothing', async () => {
    const { stream, epoch } = await filled('refused');
    (await SseSubscription.open(broker.port, stream, as('ada'))).cut();
    const subscriber = 'ada';
    const cursor = cursorOf(epoch, 6);
    const ahead = await askAcknowledgement(broker.port, stream, { subscriber, cursor: cursorOf(epoch, 7) });
    assert.equal(assertProblem(ahead, 400, 'ack_ahead').head, cursor);
    const other = await askAcknowledgement(broker.port, stream, { subscriber, cursor: 'zzzzzzzzzz.3' });
    const problem = assertProblem(other, 410, 'resume_unavailable');
    assert.deepEqual([problem.reason, problem.epoch, problem.head], ['epoch_changed', epoch, 6]);
    for (const [body, status, code] of [
      [{ subscriber, cursor: 'nonsense' }, 400, 'malformed'],
      [{ subscriber, cursor: 'latest' }, 400, 'malformed'],
      [{ subscriber }, 400, 'malformed'],
      [{ cursor }, 400, 'invalid_body'],
      [{ subscriber: 'a b', cursor }, 400, 'invalid_body'],
      [null, 400, 'invalid_body'],
      [{ subscriber: 'eve', cursor }, 404, 'subscriber_not_found'],
    ] as const) {
      assertProblem(await askAcknowledgement(broker.port, stream, body), status, code);
    }
    const nowhere = await askAcknowledgement(broker.port, freshStream('nowhere'), { subscriber, cursor });
    assertProblem(nowhere, 404, 'stream_not_found');
    assert.deepEqual(await namedOf(broker.port, stream), [{ name: 'ada', acked: cursor, lag: 0 }]);
  });

  it('4.8 a bad name is 400; a refused cursor makes no subscriber', async () => {
    const { stream, epoch } = await filled('names');
    for (const query of ['subscriber=', 'subscriber=a%20b', `subscriber=${'x'.repeat(201)}`]) {
      const asked = await SseSubscription.ask(broker.port, stream, { query });
      assertProblem(await asked.refusal(), 400, 'invalid_query');
    }
    const asked = await SseSubscription.ask(broker.port, stream, {
      cursor: cursorOf(epoch, 9),
      ...as('ada'),
    });
    assertProblem(await asked.refusal(), 410, 'resume_unavailable');
    assert.deepEqual(await namedOf(broker.port, stream), []);
  });

  it('7 one that is forgotten is not there, and comes as if for the first time', async () => {
    const { stream, epoch } = await filled('forgotten');
    (await SseSubscription.open(broker.port, stream, { cursor: cursorOf(epoch, 2), ...as('ada') })).cut();
    const forget = () =>
      request(broker.port, { method: 'DELETE', path: `/v1/streams/${stream}/subscribers/ada` });
    assert.equal((await forget()).status, 204);
    assertProblem(await forget(), 404, 'subscriber_not_found');
    const again = await SseSubscription.open(broker.port, stream, as('ada'));
    assert.equal(await again.untilPrimed(), cursorOf(epoch, 6));
    again.cut();
  });

  it('2.3 they go with their stream, and metrics count them', async () => {
    const { stream, epoch } = await filled('metrics');
    const before = await scrape(broker.port);
    for (const name of ['ada', 'bob']) (await SseSubscription.open(broker.port, stream, as(name))).cut();
    await askAcknowledgement(broker.port, stream, { subscriber: 'ada', cursor: cursorOf(epoch, 6) });
    const more = async (metric: string) => total(await scrape(broker.port), metric) - total(before, metric);
    assert.equal(await more('gapless_named_subscribers'), 2);
    assert.equal(await more('gapless_acknowledgements_total'), 1);
    await deleteStream(broker.port, stream);
    assert.equal(await more('gapless_named_subscribers'), 0);
    await publishLines(broker.port, stream, ['anew']);
    assert.deepEqual(await namedOf(broker.port, stream), []);
  });
});

describe('4.8 the bound of named subscribers', () => {
  const broker = useBroker('--named-subscribers-max', '2');

  it('4.8 above it is 507, and who is known still comes', async () => {
    const stream = freshStream('bound');
    const as = (name: string) => SseSubscription.ask(broker.port, stream, { query: `subscriber=${name}` });
    for (const name of ['ada', 'bob', 'ada']) (await as(name)).cut();
    assert.equal(assertProblem(await (await as('eve')).refusal(), 507, 'too_many_subscribers').limit, 2);
    const socket = LiveSocket.connect(broker.port, stream, { query: 'subscriber=eve' });
    assert.equal(await socket.untilClosed(), 4507);
  });
});

describe('5.4 named subscribers over WebSocket', () => {
  const broker = useBroker('--heartbeat-interval-ms', '100');
  const query = 'subscriber=ada';

  it('5.4 pongs acknowledge what was written, without a word of the client', async () => {
    const stream = freshStream('pong');
    const socket = await LiveSocket.open(broker.port, stream, { query });
    const { epoch } = await publishLines(broker.port, stream, range(1, 5).map(String));
    await eventually('the acknowledgement', async () => {
      return (await namedOf(broker.port, stream))[0]?.acked === cursorOf(epoch, 5);
    });
    socket.cut();
  });

  it('5.4 who answers no ping has acknowledged nothing, and is given it again (I2)', async () => {
    const stream = freshStream('no-pong');
    const silent = await LiveSocket.open(broker.port, stream, { query, answersPings: false });
    await publishLines(broker.port, stream, range(1, 5).map(String));
    await silent.until('events and a ping', () => silent.seqs.length === 5 && silent.pings.length > 0);
    silent.cut();
    const again = await LiveSocket.open(broker.port, stream, { query });
    await again.untilEvents(5);
    assert.deepEqual(again.seqs, range(1, 5));
    again.cut();
  });

  it('5.4 a pong of what was never written, or is none, acknowledges nothing', async () => {
    const stream = freshStream('forged');
    const socket = await LiveSocket.open(broker.port, stream, { query, answersPings: false });
    const { epoch } = await publishLines(broker.port, stream, ['1', '2']);
    await socket.untilSeq(2);
    for (const payload of [cursorOf(epoch, 3), 'zzzzzzzzzz.1', 'nonsense', '']) socket.pong(payload);
    socket.pong(cursorOf(epoch, 1));
    await eventually('the one that is true', async () => {
      return (await namedOf(broker.port, stream))[0]?.acked === cursorOf(epoch, 1);
    });
    socket.cut();
  });

  for (const protocol of ['gapless.json.v1', 'gapless.msgpack.v1']) {
    it(`5.5 an ack message is answered with its ref, ${protocol}`, async () => {
      const stream = freshStream('ack');
      const options = { query, answersPings: false, protocols: [protocol] };
      const socket = await LiveSocket.open(broker.port, stream, options);
      const { epoch } = await publishLines(broker.port, stream, ['1', '2', '3']);
      await socket.untilSeq(3);
      socket.sayMap({ kind: 'ack', ref: 7, cursor: cursorOf(epoch, 2) });
      assert.deepEqual(await socket.untilKind('acked'), {
        kind: 'acked',
        cursor: cursorOf(epoch, 2),
        ref: 7,
      });
      for (const [message, code] of [
        [{ kind: 'ack', ref: 'x', cursor: cursorOf(epoch, 4) }, 'ack_ahead'],
        [{ kind: 'ack', ref: 'x' }, 'malformed'],
        [{ kind: 'else', ref: 'x' }, 'invalid_body'],
        [{ kind: 'ack', ref: { no: 1 } }, 'invalid_body'],
      ] as const) {
        const count = socket.ofKind('error').length + 1;
        socket.sayMap(message);
        assert.equal((await socket.untilKind('error', count)).code, code);
      }
      socket.send('garbage');
      assert.equal((await socket.untilKind('error', 5)).code, 'invalid_body');
      assert.equal((await namedOf(broker.port, stream))[0]?.acked, cursorOf(epoch, 2));
      socket.cut();
    });
  }

  it('5.5 messages beyond those that may wait for their answers are 429, and each is answered', async () => {
    const stream = freshStream('many');
    const socket = await LiveSocket.open(broker.port, stream, { query, answersPings: false });
    const { epoch } = await publishLines(broker.port, stream, ['1']);
    // All are there when it goes on, so it takes them up before any is answered.
    await broker.process.standStill();
    for (const ref of range(1, 500)) socket.sayMap({ kind: 'ack', ref, cursor: cursorOf(epoch, 1) });
    await nextTurn();
    broker.process.signal('SIGCONT');
    await socket.until('500 answers', () => {
      return socket.ofKind('acked').length + socket.ofKind('error').length === 500;
    });
    assert.ok(socket.ofKind('acked').length >= 64);
    assert.ok(
      socket.ofKind('error').every(({ code, limit }) => code === 'too_many_messages' && limit === 64),
    );
    assert.ok(socket.ofKind('error').length > 0);
    socket.cut();
  });

  it('5.5 without a name there is nothing to acknowledge', async () => {
    const socket = await LiveSocket.open(broker.port, freshStream('nameless'));
    socket.sayMap({ kind: 'ack', cursor: 'zzzzzzzzzz.1' });
    assert.equal((await socket.untilKind('error')).code, 'subscriber_not_found');
    socket.cut();
  });

  it('5.5 one who says much and reads nothing is cut off (I7)', async () => {
    const socket = await LiveSocket.open(broker.port, freshStream('talker'));
    socket.stall();
    const closed = socket.untilClosed();
    for (let sent = 0; !socket.isClosed && sent < 300_000; sent++) {
      socket.send('{"kind":"else"}');
      if (sent % 1000 === 0) await new Promise(setImmediate);
    }
    socket.unstall();
    await closed;
  });
});

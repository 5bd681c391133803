import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges, type SuiteBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { useDurableBroker } from '../support/durable-broker.js';
import {
  assertProblem,
  closeStream,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { answeredOf, keyRequest, type ProducerPublish, producerRequest } from '../support/producer.js';

/** So many of a producer's newest publishes are remembered with their place. */
const WINDOW = 8;

describeOnEdges('3.4 exactly once, in memory', [], testProducers);
describeOnEdges('3.4 exactly once, with a durable log', [], testProducers, useDurableBroker);

function testProducers(broker: SuiteBroker): void {
  /** A connection of its own for each, so that repeats come to other edges. */
  function send(asked: Partial<ProducerPublish> & { stream: string; seq: number }): Promise<HttpResponse> {
    const lines = [`event of ${asked.seq}`];
    return request(broker.port, producerRequest({ id: 'producer', epoch: 0, lines, ...asked }));
  }

  async function textsOf(stream: string): Promise<string[]> {
    return (await readAll(broker.port, stream)).map(({ data }) => data);
  }

  it('3.4 a repeat answers as the first time did, says so, and appends nothing', async () => {
    const stream = freshStream('repeat');
    const lines = ['one', 'two', 'three'];
    const first = answeredOf(await send({ stream, seq: 0, lines }));
    assert.deepEqual([first.first, first.last, first.isDuplicate], [1, 3, false]);
    await publish(broker.port, stream, 'of somebody else');
    for (const _again of range(1, 10)) {
      assert.deepEqual(answeredOf(await send({ stream, seq: 0, lines })), { ...first, isDuplicate: true });
    }
    assert.deepEqual(await textsOf(stream), [...lines, 'of somebody else']);
  });

  it('3.4 the newest eight can be repeated in any order, and of older ones is said that they were appended', async () => {
    const stream = freshStream('window');
    const answers = [];
    for (const seq of range(0, 19)) {
      answers.push(
        answeredOf(await send({ stream, seq, lines: range(0, seq % 3).map((n) => `${seq}.${n}`) })),
      );
    }
    const { head } = await stateOf(broker.port, stream);
    for (const [seq, answer] of [...answers.entries()].reverse()) {
      const response = await send({ stream, seq });
      if (seq > 19 - WINDOW) assert.deepEqual(answeredOf(response), { ...answer, isDuplicate: true });
      else assertProblem(response, 409, 'publish_forgotten');
    }
    assert.equal((await stateOf(broker.port, stream)).head, head);
  });

  it('3.4 a seq that skips is 409 producer_gap with the expected one, and appends nothing', async () => {
    const stream = freshStream('gap');
    assert.equal(assertProblem(await send({ stream, seq: 1 }), 409, 'producer_gap').expected, 0);
    for (const seq of range(0, 3)) answeredOf(await send({ stream, seq }));
    for (const seq of [5, 6, 2 ** 53 - 1]) {
      assert.equal(assertProblem(await send({ stream, seq }), 409, 'producer_gap').expected, 4);
    }
    assert.equal(assertProblem(await send({ stream, epoch: 1, seq: 4 }), 409, 'producer_gap').expected, 0);
    assert.deepEqual(answeredOf(await send({ stream, seq: 4 })).first, 5);
    assert.equal((await stateOf(broker.port, stream)).head, 5);
  });

  it('3.4 a newer producer epoch begins with 0, and older ones are 403 producer_fenced', async () => {
    const stream = freshStream('fenced');
    answeredOf(await send({ stream, seq: 0 }));
    answeredOf(await send({ stream, seq: 1 }));
    answeredOf(await send({ stream, epoch: 7, seq: 0 }));
    for (const seq of [0, 1, 2]) {
      const problem = assertProblem(await send({ stream, seq }), 403, 'producer_fenced');
      assert.equal(problem.producerEpoch, 7);
    }
    assert.equal(answeredOf(await send({ stream, epoch: 7, seq: 0 })).isDuplicate, true);
    assert.equal(answeredOf(await send({ stream, epoch: 7, seq: 1 })).first, 4);
  });

  it('3.4 producers do not know of each other, nor streams of each other', async () => {
    const streams = [freshStream('mine'), freshStream('yours')];
    for (const stream of streams) {
      for (const id of ['a', 'b', '"a"', 'A', 'x'.repeat(256)]) {
        for (const seq of range(0, 2))
          assert.equal(answeredOf(await send({ stream, id, seq })).isDuplicate, false);
      }
    }
    for (const stream of streams) assert.equal((await stateOf(broker.port, stream)).head, 15);
  });

  it('3.4 a key is appended once, however often and wherever it comes at the same time', async () => {
    const stream = freshStream('key');
    await publish(broker.port, stream, 'first');
    for (const round of range(1, 10)) {
      const answers = await Promise.all(
        range(1, 12).map(async () =>
          answeredOf(await request(broker.port, keyRequest(stream, `key ${round}`, `body ${round}`))),
        ),
      );
      assert.equal(answers.filter(({ isDuplicate }) => !isDuplicate).length, 1);
      assert.deepEqual(new Set(answers.map(({ first }) => first)), new Set([round + 1]));
    }
    assert.deepEqual(await textsOf(stream), ['first', ...range(1, 10).map((round) => `body ${round}`)]);
  });

  it('3.4 of rivals with the same producer and seq exactly one is appended, and all are told where', async () => {
    const stream = freshStream('rivals');
    await publish(broker.port, stream, 'first');
    for (const seq of range(0, 19)) {
      const answers = await Promise.all(
        range(1, 10).map(async (rival) =>
          answeredOf(await send({ stream, seq, lines: [`${seq} of ${rival}`] })),
        ),
      );
      assert.equal(answers.filter(({ isDuplicate }) => !isDuplicate).length, 1);
      assert.deepEqual(new Set(answers.map(({ first }) => first)), new Set([seq + 2]));
    }
    const texts = (await textsOf(stream)).slice(1);
    assert.deepEqual(
      texts.map((text) => Number.parseInt(text, 10)),
      range(0, 19),
    );
  });

  it('3.4 a repeat is answered whatever became of the stream: moved on, closed; but not on one made anew', async () => {
    const stream = freshStream('later');
    const first = answeredOf(await send({ stream, seq: 0 }));
    const head = { 'Gapless-If-Head': `${first.epoch}.0` };
    const conditional = { ...producerRequest({ stream, id: 'producer', epoch: 0, seq: 0, lines: ['x'] }) };
    const asked = { ...conditional, headers: { ...conditional.headers, ...head } };
    assert.deepEqual(answeredOf(await request(broker.port, asked)), { ...first, isDuplicate: true });
    await closeStream(broker.port, stream);
    assert.deepEqual(answeredOf(await send({ stream, seq: 0 })), { ...first, isDuplicate: true });
    assertProblem(await send({ stream, seq: 1 }), 409, 'stream_closed');
    await deleteStream(broker.port, stream);
    const anew = answeredOf(await send({ stream, seq: 0 }));
    assert.notEqual(anew.epoch, first.epoch);
    assert.equal(anew.isDuplicate, false);
  });

  it('3.4, 3.5 a publish that is refused for its head, or its body, is still the next', async () => {
    const stream = freshStream('unused');
    const { epoch } = await publish(broker.port, stream, 'first');
    const next = producerRequest({ stream, id: 'producer', epoch: 0, seq: 0, lines: ['next'] });
    const elsewhere = { ...next, headers: { ...next.headers, 'Gapless-If-Head': `${epoch}.0` } };
    assertProblem(await request(broker.port, elsewhere), 412, 'head_mismatch');
    assertProblem(await request(broker.port, { ...next, body: '' }), 400, 'empty_batch');
    assert.equal(answeredOf(await request(broker.port, next)).isDuplicate, false);
  });

  it('3.4 what does not name a producer, or a key, as it should is 400 invalid_producer', async () => {
    const stream = freshStream('invalid');
    const whole = { 'Producer-Id': 'a', 'Producer-Epoch': '0', 'Producer-Seq': '0' };
    const wrong: Record<string, string>[] = [
      { 'Producer-Id': 'a' },
      { 'Producer-Seq': '0' },
      { 'Producer-Epoch': '0' },
      { 'Producer-Id': 'a', 'Producer-Seq': '0' },
      { 'Producer-Id': 'a', 'Producer-Epoch': '0' },
      { ...whole, 'Idempotency-Key': 'k' },
      { 'Producer-Seq': '0', 'Idempotency-Key': 'k' },
      ...['-1', '01', '1.5', '1e2', 'x', '9007199254740992'].flatMap((text) => [
        { ...whole, 'Producer-Epoch': text },
        { ...whole, 'Producer-Seq': text },
      ]),
      { ...whole, 'Producer-Id': 'x'.repeat(257) },
      { ...whole, 'Producer-Id': 'caf\u00e9s' },
      { 'Idempotency-Key': 'x'.repeat(257) },
      { 'Idempotency-Key': 'a\tb' },
    ];
    for (const headers of wrong) {
      const asked = publishRequest(stream, 'x', MEDIA_TYPES.text, headers);
      assertProblem(await request(broker.port, asked), 400, 'invalid_producer');
    }
    assert.equal((await request(broker.port, { path: `/v1/streams/${stream}/state` })).status, 404);
  });
}

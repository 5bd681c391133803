import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type SuiteBroker, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { assertProblem, deleteStream, freshStream, publish, stateOf } from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { answeredOf, keyRequest, producerRequest } from '../support/producer.js';
import { scrape, total } from '../support/prometheus.js';

const FEW = ['--producers-max', '5', '--idempotency-keys-max', '7'];
const MEMORY = 'gapless_producer_memory_bytes';
const SHORT = ['--producer-ttl-ms', '1s', '--idempotency-ttl-ms', '1s'];

for (const [where, use] of [
  ['in memory', useBroker],
  ['with a durable log', useDurableBroker],
] as const) {
  describe(`3.4 what is remembered is bounded, ${where}`, () => testBounds(use(...FEW)));
  describe(`3.4 what is remembered is forgotten after its time, ${where}`, () =>
    testTimes(use(...FEW, ...SHORT)));
}

function send(broker: SuiteBroker, stream: string, id: string, seq: number): Promise<HttpResponse> {
  return request(broker.port, producerRequest({ stream, id, epoch: 0, seq, lines: [`${id} ${seq}`] }));
}

function testBounds(broker: SuiteBroker): void {
  it('3.4 one producer or key more is 507 too_many_producers; those that are known go on, and so do others', async () => {
    const stream = freshStream('many');
    for (const index of range(1, 5)) answeredOf(await send(broker, stream, `p${index}`, 0));
    for (const index of range(1, 7))
      answeredOf(await request(broker.port, keyRequest(stream, `k${index}`, 'x')));
    assertProblem(await send(broker, stream, 'p6', 0), 507, 'too_many_producers');
    assertProblem(await request(broker.port, keyRequest(stream, 'k8', 'x')), 507, 'too_many_producers');
    assert.equal((await stateOf(broker.port, stream)).head, 12);
    for (const index of range(1, 5)) {
      assert.equal(answeredOf(await send(broker, stream, `p${index}`, 0)).isDuplicate, true);
      assert.equal(answeredOf(await send(broker, stream, `p${index}`, 1)).isDuplicate, false);
    }
    await publish(broker.port, stream, 'without a producer');
    answeredOf(await send(broker, freshStream('other'), 'p6', 0));
    await deleteStream(broker.port, stream);
    for (const index of range(1, 5)) answeredOf(await send(broker, stream, `q${index}`, 0));
  });

  it('10 repeats, refusals and the memory that is taken can be seen in the metrics', async () => {
    const stream = freshStream('seen');
    const before = await scrape(broker.port);
    answeredOf(await send(broker, stream, 'p', 0));
    answeredOf(await send(broker, stream, 'p', 0));
    assertProblem(await send(broker, stream, 'p', 2), 409, 'producer_gap');
    const after = await scrape(broker.port);
    const grown = (name: string, labels = {}) => total(after, name, labels) - total(before, name, labels);
    assert.equal(grown('gapless_publish_duplicates_total'), 1);
    assert.equal(grown('gapless_producer_refusals_total', { reason: 'gap' }), 1);
    assert.equal(grown('gapless_publishes_total'), 1);
    assert.ok(grown(MEMORY) > 0);
    await deleteStream(broker.port, stream);
    const end = await scrape(broker.port);
    assert.ok(total(end, MEMORY) < total(after, MEMORY), 'a deleted stream gives its memory back');
  });
}

function testTimes(broker: SuiteBroker): void {
  it('3.4 a forgotten producer is told producer_gap with 0, a forgotten key is new, and their room is free again', async () => {
    const stream = freshStream('times');
    for (const index of range(1, 5)) answeredOf(await send(broker, stream, `p${index}`, 0));
    for (const index of range(1, 7))
      answeredOf(await request(broker.port, keyRequest(stream, `k${index}`, 'x')));
    await eventually('a key to be forgotten', async () => {
      const response = await request(broker.port, keyRequest(stream, 'k1', 'x'));
      return !answeredOf(response).isDuplicate;
    });
    assert.equal(assertProblem(await send(broker, stream, 'p1', 1), 409, 'producer_gap').expected, 0);
    await eventually(
      'room for a new producer',
      async () => (await send(broker, stream, 'new', 0)).status === 200,
    );
    await eventually('all memory to be free again', async () => {
      return total(await scrape(broker.port), MEMORY) === 0;
    });
  });
}

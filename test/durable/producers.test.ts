import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker } from '../support/durable-broker.js';
import {
  assertProblem,
  deleteStream,
  freshStream,
  publish,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { type Answered, answeredOf, keyRequest, producerRequest } from '../support/producer.js';

const ENDS: Readonly<Record<string, (broker: DurableBroker) => Promise<void>>> = {
  SIGTERM: (broker) => broker.restart(),
  SIGKILL: (broker) => broker.killAndStart(),
};

for (const [signal, again] of Object.entries(ENDS)) {
  describe(`producers of a broker that ends by ${signal} and starts in the same directory`, () => {
    it('3.4 a repeat answers as the first time did, of each publish that is remembered with its place', async (context) => {
      const broker = await DurableBroker.start(context, '--threads', '2');
      const stream = freshStream('repeat');
      const send = (seq: number, epoch = 3) =>
        request(
          broker.port,
          producerRequest({ stream, id: 'a', epoch, seq, lines: range(0, seq % 3).map(String) }),
        );
      const keyed = (key: string) => request(broker.port, keyRequest(stream, key, key));
      const answers: Answered[] = [];
      for (const seq of range(0, 11)) answers.push(answeredOf(await send(seq)));
      const keys: Answered[] = [];
      for (const index of range(1, 20)) keys.push(answeredOf(await keyed(`key ${index}`)));
      for (const _restart of range(1, 2)) {
        await again(broker);
        for (const seq of range(0, 11)) {
          const response = await send(seq);
          if (seq < 4) assertProblem(response, 409, 'publish_forgotten');
          else assert.deepEqual(answeredOf(response), { ...answers[seq], isDuplicate: true });
        }
        for (const index of range(1, 20)) {
          const answer = answeredOf(await keyed(`key ${index}`));
          assert.deepEqual(answer, { ...keys[index - 1], isDuplicate: true });
        }
        assert.equal(assertProblem(await send(13), 409, 'producer_gap').expected, 12);
        assertProblem(await send(12, 2), 403, 'producer_fenced');
      }
      assert.equal(answeredOf(await send(12)).isDuplicate, false);
      assert.equal(answeredOf(await send(0, 4)).isDuplicate, false);
      await again(broker);
      assertProblem(await send(13), 403, 'producer_fenced');
      assert.equal(answeredOf(await send(0, 4)).isDuplicate, true);
      await broker.end();
    });

    it('3.4 whose time is over before the restart, or passes after it, is not known any more', async (context) => {
      const broker = await DurableBroker.start(
        context,
        '--producer-ttl-ms',
        '1s',
        '--idempotency-ttl-ms',
        '1s',
      );
      const stream = freshStream('over');
      const send = (seq: number) =>
        request(broker.port, producerRequest({ stream, id: 'a', epoch: 0, seq, lines: ['x'] }));
      answeredOf(await send(0));
      answeredOf(await request(broker.port, keyRequest(stream, 'key', 'x')));
      await again(broker);
      await eventually('the key to be forgotten', async () => {
        return !answeredOf(await request(broker.port, keyRequest(stream, 'key', 'x'))).isDuplicate;
      });
      assert.equal(assertProblem(await send(1), 409, 'producer_gap').expected, 0);
      await broker.end();
    });

    it('3.4 a stream that was deleted has taken its producers with it', async (context) => {
      const broker = await DurableBroker.start(context);
      const stream = freshStream('deleted');
      const asked = producerRequest({ stream, id: 'a', epoch: 0, seq: 0, lines: ['x'] });
      const before = answeredOf(await request(broker.port, asked));
      await deleteStream(broker.port, stream);
      await again(broker);
      const after = answeredOf(await request(broker.port, asked));
      assert.equal(after.isDuplicate, false);
      assert.notEqual(after.epoch, before.epoch);
      assert.equal((await stateOf(broker.port, stream)).head, 1);
      await broker.end();
    });
  });
}

it('3.4 a publish that was not answered, and repeated after a kill, stands there once whether it had been committed or not', async (context) => {
  const broker = await DurableBroker.start(context, '--threads', '2');
  const stream = freshStream('unanswered');
  await publish(broker.port, stream, 'first');
  const outcomes = { appended: 0, duplicate: 0 };
  for (const round of range(1, 6)) {
    const lines = [`round ${round}, one`, `round ${round}, two`];
    const asked = producerRequest({ stream, id: 'a', epoch: 0, seq: round - 1, lines });
    const unanswered = request(broker.port, asked).then(
      () => true,
      () => false,
    );
    // From before the request arrives to after its commit.
    if (round % 2 === 0) await unanswered;
    await broker.killAndStart();
    await unanswered;
    outcomes[answeredOf(await request(broker.port, asked)).isDuplicate ? 'duplicate' : 'appended']++;
    assert.equal(answeredOf(await request(broker.port, asked)).isDuplicate, true);
  }
  assert.ok(outcomes.duplicate >= 3, 'those that were answered are known');
  const texts = (await readAll(broker.port, stream)).map(({ data }) => data);
  const expected = range(1, 6).flatMap((round) => [`round ${round}, one`, `round ${round}, two`]);
  assert.deepEqual(texts, ['first', ...expected]);
  await broker.end();
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker } from '../support/durable-broker.js';
import { createStream, freshStream, MEDIA_TYPES } from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { seededPrng } from '../support/prng.js';
import { producerRequest } from '../support/producer.js';
import { SseSubscription } from '../support/sse-client.js';

const KEPT = 10;
const KILLS = 3;
const EVENTS = 100;

/** While a broker is killed and started again, whoever asks it asks again. */
function untilAnswered(ask: () => Promise<HttpResponse>): Promise<HttpResponse> {
  return eventually('an answer', async () => {
    const response = await ask().catch(() => null);
    return response !== null && response.status !== 429 && response.status !== 503 && response;
  });
}

it('3.6 who acknowledges what it has is never refused, however often the broker is killed, and misses nothing (I2)', async (context) => {
  const broker = await DurableBroker.start(context, '--threads', '2');
  const stream = freshStream('killed');
  await createStream(broker.port, stream, { retention: { events: KEPT }, overflow: 'reject' });
  (await SseSubscription.open(broker.port, stream, { cursor: 'earliest', query: 'subscriber=ada' })).cut();
  const prng = seededPrng(context);
  const killsAt = range(1, KILLS).map(() => prng.below(EVENTS));
  let killing = Promise.resolve();
  const publishing = (async () => {
    for (const seq of range(0, EVENTS - 1)) {
      // Beside the publish, and whatever the reader is at.
      for (const _kill of killsAt.filter((at) => at === seq)) {
        killing = killing.then(() => broker.killAndStart());
      }
      const asked = producerRequest({ stream, id: 'a', epoch: 0, seq, lines: [`event ${seq}`] });
      assert.equal((await untilAnswered(() => request(broker.port, asked))).status, 200);
    }
  })();
  let seen = 0;
  while (seen < EVENTS) {
    const asked = { query: 'subscriber=ada' };
    const reader = await SseSubscription.ask(broker.port, stream, asked).catch(() => null);
    if (reader === null) continue;
    // A cursor that the server keeps is behind what was read, never ahead; and it can always be resumed.
    assert.notEqual(reader.status, 410, 'what was not acknowledged was evicted');
    await reader.untilEvents(1).catch(() => undefined);
    reader.cut();
    for (const { id, data } of reader.events) {
      const seq = seqOf(id);
      assert.ok(seq <= seen + 1, `event ${seq} came after ${seen}`);
      assert.equal(data, `event ${seq - 1}`);
      seen = Math.max(seen, seq);
    }
    const last = reader.events.at(-1)?.id;
    if (last === undefined) continue;
    const headers = { 'Content-Type': MEDIA_TYPES.json };
    const body = JSON.stringify({ subscriber: 'ada', cursor: last });
    const path = `/v1/streams/${stream}/ack`;
    assert.equal((await untilAnswered(() => request(broker.port, { path, headers, body }))).status, 200);
  }
  await publishing;
  await killing;
  await broker.end();
});

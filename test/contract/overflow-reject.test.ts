import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker, useDurableBroker } from '../support/durable-broker.js';
import {
  assertProblem,
  createStream,
  freshStream,
  publish,
  publishLines,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { acknowledge } from '../support/named-subscriber.js';
import { answeredOf, producerRequest } from '../support/producer.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { LiveSocket } from '../support/websocket-client.js';

const KEPT = 10;
const REJECTING = { retention: { events: KEPT }, overflow: 'reject' };
/** Above twice what is kept: the durable log says that it is full after the commit that made it so. */
const PAST_MAX = 1;

async function join(
  port: number,
  stream: string,
  subscriber: string,
  cursor?: string,
): Promise<SseSubscription> {
  const query = `subscriber=${subscriber}`;
  return SseSubscription.open(port, stream, cursor === undefined ? { query } : { cursor, query });
}

/** Publishes one by one until that is refused. @returns how many were taken. */
async function publishUntilRefused(
  port: number,
  stream: string,
): Promise<{ taken: number; refusal: HttpResponse }> {
  for (let taken = 0; taken < 1000; taken++) {
    const response = await request(port, publishRequest(stream, `event ${taken}`));
    if (response.status !== 200) return { taken, refusal: response };
  }
  throw new Error('nothing was refused');
}

function describeRejecting(kind: string, use?: typeof useDurableBroker): void {
  describeOnEdges(
    `3.6 overflow: reject, ${kind}`,
    [],
    (broker) => {
      it('3.6 publishers wait for a named subscriber, who misses nothing, and go on when it has acknowledged (I2)', async () => {
        const stream = freshStream('waits');
        await createStream(broker.port, stream, REJECTING);
        (await join(broker.port, stream, 'ada')).cut();
        const { taken, refusal } = await publishUntilRefused(broker.port, stream);
        assert.ok(taken >= 2 * KEPT && taken <= 2 * KEPT + PAST_MAX, `${taken} were taken`);
        assertProblem(refusal, 429, 'backpressure');
        assert.ok(Number(refusal.header('retry-after')) >= 1);
        const { epoch, head } = await stateOf(broker.port, stream);
        assert.equal(head, taken, 'what was refused was not appended');
        const reader = await join(broker.port, stream, 'ada');
        await reader.untilSeq(taken);
        assert.deepEqual(reader.seqs, range(1, taken));
        await acknowledge(broker.port, stream, 'ada', cursorOf(epoch, taken - 2));
        assert.equal((await publish(broker.port, stream, 'on')).last, taken + 1);
        await reader.untilSeq(taken + 1);
        reader.cut();
        const refused = total(await scrape(broker.port), 'gapless_publishes_refused_total', {
          reason: 'held',
        });
        assert.ok(refused >= 1);
      });

      it('3.6 the slowest decides, and nobody waits for who was forgotten', async () => {
        const stream = freshStream('slowest');
        await createStream(broker.port, stream, REJECTING);
        for (const name of ['ada', 'bob']) (await join(broker.port, stream, name)).cut();
        const { taken } = await publishUntilRefused(broker.port, stream);
        const { epoch } = await stateOf(broker.port, stream);
        await acknowledge(broker.port, stream, 'ada', cursorOf(epoch, taken));
        assertProblem(await request(broker.port, publishRequest(stream, 'x')), 429, 'backpressure');
        const path = `/v1/streams/${stream}/subscribers/bob`;
        assert.equal((await request(broker.port, { method: 'DELETE', path })).status, 204);
        await publish(broker.port, stream, 'on');
      });

      it('3.6 nobody waits for subscribers without a name, nor where the stream evicts', async () => {
        const nameless = freshStream('nameless');
        await createStream(broker.port, nameless, REJECTING);
        const reader = await SseSubscription.open(broker.port, nameless);
        const evicting = freshStream('evicting');
        await createStream(broker.port, evicting, { retention: { events: KEPT } });
        (await join(broker.port, evicting, 'ada')).cut();
        for (const seq of range(1, 4 * KEPT)) {
          await publish(broker.port, nameless, String(seq));
          await publish(broker.port, evicting, String(seq));
        }
        reader.cut();
      });

      it('3.6 what was refused does not count as published, whoever says it, and by a message too', async () => {
        const stream = freshStream('again');
        await createStream(broker.port, stream, REJECTING);
        (await join(broker.port, stream, 'ada')).cut();
        const socket = await LiveSocket.open(broker.port, stream);
        const { taken } = await publishUntilRefused(broker.port, stream);
        const asked = producerRequest({ stream, id: 'a', epoch: 0, seq: 0, lines: ['kept'] });
        assertProblem(await request(broker.port, asked), 429, 'backpressure');
        const said = await socket.publish({ events: [{ data: 'said' }] });
        assert.deepEqual([said.code, said.retryAfter], ['backpressure', 1]);
        await acknowledge(
          broker.port,
          stream,
          'ada',
          cursorOf((await stateOf(broker.port, stream)).epoch, taken),
        );
        assert.equal(answeredOf(await request(broker.port, asked)).isDuplicate, false);
        assert.equal(answeredOf(await request(broker.port, asked)).isDuplicate, true);
        socket.cut();
      });

      it('3.6 events go for their age all the same, and who had yet to be given them is told', async () => {
        const stream = freshStream('aged');
        await createStream(broker.port, stream, {
          retention: { events: KEPT, ageMs: 2000 },
          overflow: 'reject',
        });
        (await join(broker.port, stream, 'ada')).cut();
        // At once, or on a slow machine the first go for their age before the last have come.
        await publishLines(broker.port, stream, range(1, 2 * KEPT).map(String));
        await publishUntilRefused(broker.port, stream);
        await eventually('a publish to be taken', async () => {
          return (await request(broker.port, publishRequest(stream, 'on'))).status === 200;
        });
        const late = await SseSubscription.ask(broker.port, stream, { query: 'subscriber=ada' });
        assert.equal(late.status, 410);
        late.cut();
      });

      it('3.6 a subscriber that breaks over and over, beside a publisher that tries again, is given everything once (I1, I2)', async () => {
        const stream = freshStream('both');
        await createStream(broker.port, stream, REJECTING);
        (await join(broker.port, stream, 'ada')).cut();
        const published = (async () => {
          for (const seq of range(0, 199)) {
            const asked = producerRequest({ stream, id: 'a', epoch: 0, seq, lines: [`event ${seq}`] });
            while ((await request(broker.port, asked)).status === 429) {
              await new Promise((resolve) => setImmediate(resolve));
            }
          }
        })();
        const seen: string[] = [];
        while (seen.length < 200) {
          const reader = await join(broker.port, stream, 'ada');
          await reader.untilEvents(1);
          reader.cut();
          seen.push(...reader.events.map(({ data }) => data));
          await acknowledge(broker.port, stream, 'ada', reader.events.at(-1)?.id ?? '');
        }
        await published;
        assert.deepEqual(
          seen,
          range(0, 199).map((seq) => `event ${seq}`),
        );
      });
    },
    use,
  );
}

describeRejecting('in memory');
describeRejecting('with a durable log', useDurableBroker);

describe('3.6 overflow: reject', () => {
  it('3.6 what was held when the broker went down is held when it is up again', async (context) => {
    const broker = await DurableBroker.start(context);
    const stream = freshStream('restart');
    await createStream(broker.port, stream, REJECTING);
    (await join(broker.port, stream, 'ada')).cut();
    const { taken } = await publishUntilRefused(broker.port, stream);
    await broker.killAndStart();
    const again = await publishUntilRefused(broker.port, stream);
    assert.ok(again.taken <= PAST_MAX, `${again.taken} more were taken`);
    const events = await readAll(broker.port, stream);
    assert.deepEqual(
      events.map(({ id }) => seqOf(id)),
      range(1, taken + again.taken),
    );
    await broker.end();
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { range } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
import { freshStream, publishLines, type StreamState, stateOf } from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { seededPrng } from '../support/prng.js';

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 3);
/** Together far more than the log takes in one commit, so that some batch would be cut in two by its end. */
const STREAMS = 8;
const BATCH_EVENTS = 1000;
const EVENT_BYTES = 4 * 1024;
const BATCHES_EACH = 3;
const KILL_DELAY_MS_MAX = 400;

it('3.1 SIGKILL while more is in flight than one commit takes: each batch is there whole or not at all', async (context) => {
  const prng = seededPrng(context);
  const broker = await DurableBroker.start(context, '--memory', '512MiB');
  const prefix = freshStream('batch');
  const streams = range(1, STREAMS).map((index) => `${prefix}-${index}`);
  const acked = new Map(streams.map((stream) => [stream, 0]));
  /** What a crash at that moment would have left half of. */
  const halves: string[] = [];

  for (const _round of range(1, ROUNDS)) {
    let isOver = false;
    const publishing = Promise.all(streams.map((stream) => publishBatches(stream)));
    const watching = watchFor(() => isOver);
    // At any moment, but when half of a batch is committed at the latest.
    await Promise.race([publishing, watching, delay(prng.below(KILL_DELAY_MS_MAX))]);
    isOver = true;
    await broker.process.kill();
    await Promise.all([publishing, watching]);
    await broker.startAgain();
    for (const stream of streams) {
      const { head } = await stateOf(broker.port, stream);
      if (head % BATCH_EVENTS !== 0) halves.push(`${stream} ends at ${head} after the restart`);
      assert.ok(head >= (acked.get(stream) ?? 0), `${stream} has lost what was acknowledged`);
      // So that the next round's batches can be told from each other again.
      const missing = (BATCH_EVENTS - (head % BATCH_EVENTS)) % BATCH_EVENTS;
      if (missing > 0) await publishLines(broker.port, stream, linesOf(missing));
    }

    async function publishBatches(stream: string): Promise<void> {
      try {
        const connection = await HttpConnection.open(broker.port);
        for (const _batch of range(1, BATCHES_EACH)) {
          acked.set(stream, (await publishLines(connection, stream, linesOf(BATCH_EVENTS))).last);
        }
        connection.destroy();
      } catch (error) {
        if (!isOver) throw error;
      }
    }
  }
  assert.deepEqual(halves, []);
  await broker.end();

  /** Resolves when some stream is committed up to the middle of a batch, or with the round. */
  async function watchFor(isOver: () => boolean): Promise<void> {
    try {
      const connection = await HttpConnection.open(broker.port);
      while (!isOver()) {
        const response = await connection.request({ path: `/v1/streams?prefix=${prefix}` });
        const { streams: states } = response.json<{ streams: (StreamState & { name: string })[] }>();
        const half = states.find(({ committed }) => committed % BATCH_EVENTS !== 0);
        if (half === undefined) continue;
        halves.push(`${half.name} was committed up to ${half.committed}`);
        return;
      }
    } catch (error) {
      if (!isOver()) throw error;
    }
  }
});

function linesOf(count: number): string[] {
  return range(1, count).map((line) => `${line} `.padEnd(EVENT_BYTES, '.'));
}

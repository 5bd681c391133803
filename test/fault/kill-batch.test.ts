import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker } from '../support/durable-broker.js';
import {
  createStream,
  freshStream,
  publishLines,
  type StreamState,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { seededPrng } from '../support/prng.js';

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 3);
/** Together far more than the log takes in one commit, so that some batch would be cut in two by its end. */
const STREAMS = 8;
const BATCH_EVENTS = 1000;
const EVENT_BYTES = 6 * 1024;

it('3.1 SIGKILL while more is in flight than one commit takes: each batch is there whole or not at all', async (context) => {
  const prng = seededPrng(context);
  const broker = await DurableBroker.start(context, '--memory', '512MiB', '--threads', '2');
  const prefix = freshStream('batch');
  const streams = range(1, STREAMS).map((index) => `${prefix}-${index}`);
  for (const stream of streams) await createStream(broker.port, stream);
  const acked = new Map(streams.map((stream) => [stream, 0]));
  /** What a crash at that moment would have left half of, and what one did. */
  const halves: string[] = [];

  for (const _round of range(1, ROUNDS)) {
    let answers = 0;
    let isOver = false;
    const watcher = await HttpConnection.open(broker.port);
    const connections = await Promise.all(streams.map(() => HttpConnection.open(broker.port)));
    // All that the kernel takes lies ready when the broker goes on, and most of it is appended before the first commit.
    await broker.process.standStill();
    const publishing = Promise.all(
      streams.map(async (stream, index) => {
        try {
          const connection = connections[index] as HttpConnection;
          acked.set(stream, (await publishLines(connection, stream, linesOf(BATCH_EVENTS))).last);
          answers++;
        } catch (error) {
          if (!isOver) throw error;
        }
      }),
    );
    await nextTurn();
    broker.process.signal('SIGCONT');
    // Killed when half of a batch is committed, or else at any moment.
    const killAt = prng.between(1, STREAMS);
    const answered = eventually('some answers', () => isOver || answers >= killAt);
    const watching = watchFor(watcher, () => isOver);
    await Promise.race([publishing, answered, watching]);
    isOver = true;
    await broker.process.kill();
    await Promise.all([publishing, watching]);
    await broker.startAgain();

    for (const stream of streams) {
      const { head } = await stateOf(broker.port, stream);
      const extra = head % BATCH_EVENTS;
      if (extra !== 0) halves.push(`${stream} ends at ${head} after the restart`);
      assert.ok(head >= (acked.get(stream) ?? 0), `${stream} has lost what was acknowledged`);
      // So that the next round begins with a whole number of batches again.
      if (extra !== 0) await publishLines(broker.port, stream, linesOf(BATCH_EVENTS - extra));
    }
  }
  assert.deepEqual(halves, []);
  await broker.end();

  /** Resolves when some stream is committed up to the middle of a batch, or with the round. */
  async function watchFor(watcher: HttpConnection, isOver: () => boolean): Promise<void> {
    try {
      while (!isOver()) {
        const response = await watcher.request({ path: `/v1/streams?prefix=${prefix}` });
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

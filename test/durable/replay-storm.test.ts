import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cursorOf, positionOf, range } from '../support/cursor.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { METRIC } from '../support/metric-names.js';
import { seededPrng } from '../support/prng.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { FilledStream } from './filled-stream.js';

const CLIENTS = 200;
const EVENTS = 10_000;
const EVENT_BYTES = 100;
/** Published while the clients read. */
const LIVE_EVENTS = 2000;
const WRITE_BYTES_MAX = 32 * 1024;

const FLAGS = ['--ring-bytes', '64KiB', '--write-bytes-max', String(WRITE_BYTES_MAX)];

for (const threads of [1, 3]) {
  describe(`a storm of resumes below the ring, with --threads ${threads}`, () => {
    // A cache that holds little of it, and a queue that is soon full.
    const broker = useDurableBroker(
      ...['--threads', String(threads), ...FLAGS],
      ...['--replay-cache-bytes', '1MiB', '--replay-queue-max', '4'],
    );

    /** Follows from a cursor, checking each event as it comes, until it has the event `until`. */
    async function follow(stream: FilledStream, after: number, until: () => number): Promise<void> {
      let last = after;
      const subscription = await SseSubscription.open(broker.port, stream.name, {
        lastEventId: cursorOf(stream.epoch, after),
        keepEvents: false,
        onEvent: ({ id, data }) => {
          const { epoch, seq } = positionOf(id);
          assert.equal(epoch, stream.epoch);
          assert.equal(seq, last + 1, 'I1: the seqs on one connection are consecutive');
          assert.equal(data, stream.dataOf(seq));
          last = seq;
        },
      });
      await subscription.until('the newest event', () => last >= until());
      subscription.cut();
    }

    async function storm(cursorOfClient: (client: number, stream: FilledStream) => number): Promise<number> {
      const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
      await stream.fill(EVENTS);
      const before = await scrape(broker.port);
      const end = EVENTS + LIVE_EVENTS;
      const clients = range(1, CLIENTS).map((client) =>
        follow(stream, cursorOfClient(client, stream), () => end),
      );
      await Promise.all([...clients, stream.fill(LIVE_EVENTS)]);
      const after = await scrape(broker.port);
      assert.equal(total(after, METRIC.seamViolations), 0);
      assert.equal(total(after, 'gapless_subscribers_overtaken_total'), 0);
      assert.equal(total(after, 'gapless_replay_failed_reads_total'), 0);
      return total(after, 'gapless_replay_reads_total') - total(before, 'gapless_replay_reads_total');
    }

    it('200 clients from the beginning at once, while a publisher goes on: each gets all of it, and reads are shared (I1, I2)', async (context) => {
      const reads = await storm(() => 0);
      const runs = Math.ceil((EVENTS * (EVENT_BYTES + 40)) / WRITE_BYTES_MAX);
      context.diagnostic(`${reads} reads for ${CLIENTS} clients, who need ${runs} runs each`);
      assert.ok(reads >= 1);
      assert.ok(reads < (CLIENTS * runs) / 10, `${reads} reads: they are not shared`);
    });

    it('200 clients at as many cursors, more than the queue and the cache hold: each gets all of it (I1, I2)', async (context) => {
      const prng = seededPrng(context);
      const reads = await storm(() => prng.below(EVENTS));
      context.diagnostic(`${reads} reads for ${CLIENTS} clients`);
    });
  });
}

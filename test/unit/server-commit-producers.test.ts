import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eachRecord, newestPlaceOf, PRODUCER } from '#gapless/core/producer-record.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED, Appender } from '#gapless/ring/append.js';
import type { ProducerClaim } from '#gapless/ring/claim-judge.js';
import { openStream } from '#gapless/ring/lifecycle.js';
import { createLogStatus, LogStatus } from '#gapless/ring/log-status.js';
import { hasTables } from '#gapless/ring/producer-memory.js';
import { createRings, Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { CommitLoop } from '#gapless/server/log/commit-loop.js';
import { MemoryLog, MemoryMedium } from '../support/memory-log.js';

const RETENTION = { events: 0, bytes: 0, ageMs: 0 };
const EPOCH = 'epoch0epoch';
const TTL_MS = 1000;
/** Publishes of such a size that no more than these go into one commit. */
const EVENT_BYTES = 2 ** 20;
const COMMIT_PUBLISHES = 16;

/** A commit loop over rings in which a producer publishes whenever the test says so. */
class Stage {
  nowMs = 1_700_000_000_000;
  readonly medium = new MemoryMedium();
  readonly log = new MemoryLog(this.medium);
  readonly rings: Rings;
  readonly loop: CommitLoop;
  readonly stream: StreamHandle;
  readonly #wakes: Wakes;
  readonly #appender: Appender;
  readonly #batch = new FrameBatch(2 * EVENT_BYTES);

  constructor() {
    const producers = { countMax: [10, 10], ttlMs: [TTL_MS, TTL_MS], bytesMax: 2 ** 16 } as const;
    this.rings = new Rings(createRings({ streamsMax: 1, memoryBytes: 2 ** 26, durable: true, producers }));
    this.#wakes = new Wakes(createWakes(1, 1, 1), this.rings);
    this.#appender = new Appender(this.rings);
    this.loop = new CommitLoop({
      rings: this.rings,
      wakes: this.#wakes,
      log: this.log,
      status: new LogStatus(createLogStatus()),
      logBytesMax: 0,
      nowMs: () => this.nowMs,
      nowSeconds: () => 0,
    });
    const { nowMs } = this;
    this.stream = openStream(this.rings, 0, {
      epoch: EPOCH,
      retention: RETENTION,
      dataBytesMax: 2 ** 25,
      nowMs,
    });
    const config = { retention: RETENTION, overflow: 'evict' as const, ttlMs: 0 };
    this.loop.create(this.stream, { name: 's', epoch: EPOCH, config }, () => undefined);
  }

  publish(seq: number, bytes = 1): void {
    this.#batch.reset();
    this.#batch.pushText(Buffer.alloc(bytes, 'x'), 0, bytes, null);
    const claim: ProducerClaim = { kind: PRODUCER, digest: Int32Array.of(1, 2, 3, 4), epoch: 0, seq };
    assert.equal(this.#appender.append(this.stream, this.#batch, this.nowMs, ANY_HEAD, claim), APPENDED);
    this.#wakes.tell(0, this.#appender.toTell, -1);
  }

  /** What the log would bring back now: its head, and how far the records reach. */
  stored(): { head: number; recorded: number } {
    const [stream] = [...new MemoryLog(this.medium).load()];
    const records = stream?.producers?.producers ?? new Uint8Array(0);
    const places = [...eachRecord(records, PRODUCER)].map((record) => newestPlaceOf(record, PRODUCER));
    return { head: stream?.head ?? 0, recorded: Math.max(0, ...places) };
  }
}

test('3.4 records go with the events that they tell of, also where a producer publishes while a full commit is handed over', async () => {
  const stage = new Stage();
  const { log } = stage;
  const append = log.append.bind(log);
  let seq = 0;
  let handedOver = 0;
  log.append = (...args) => {
    append(...args);
    // More than the window that a record has: what came in between could not be taken out of it again.
    if (++handedOver === COMMIT_PUBLISHES) for (let i = 0; i < 12; i++) stage.publish(seq++);
  };
  while (seq < COMMIT_PUBLISHES) stage.publish(seq++, EVENT_BYTES);
  log.failCommits(1, 'io');
  await assert.rejects(stage.loop.commit());
  assert.deepEqual(stage.stored(), { head: 0, recorded: 0 });
  // What failed is committed as it was, and what came in between with the one after it.
  await stage.loop.commit();
  assert.deepEqual(stage.stored(), { head: COMMIT_PUBLISHES, recorded: COMMIT_PUBLISHES });
  await stage.loop.commit();
  assert.deepEqual(stage.stored(), { head: seq, recorded: seq });
});

test('3.4 a producer is forgotten in memory and in the log, and not before its last publish is committed', async () => {
  const stage = new Stage();
  stage.publish(0);
  stage.nowMs += TTL_MS;
  stage.loop.applyRetention();
  assert.ok(hasTables(stage.rings, 0), 'its publish may still be lost');
  await stage.loop.commit();
  assert.deepEqual(stage.stored(), { head: 1, recorded: 1 });
  stage.loop.applyRetention();
  assert.ok(!hasTables(stage.rings, 0));
  await stage.loop.commit();
  assert.deepEqual(stage.stored(), { head: 1, recorded: 0 });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { EventLog } from '#gapless/storage/event-log.js';
import { withDeadline } from '../support/deadline.js';
import { Prng } from '../support/prng.js';
import { configOf, EPOCH, lmdbStage, runOf, settleDeletes, sizeOfSeq } from '../unit/storage-stage.js';
import type { Positions } from './storage-threads-reader.js';

const READER_FILE = new URL('./storage-threads-reader.js', import.meta.url);
const READERS = 3;
const ROUNDS = 60;
const COMMITS_PER_ROUND = 5;

/** Streams that grow, lose their oldest events, and go. */
class Streams {
  readonly #log: EventLog;
  readonly #prng = new Prng(5);
  readonly #heads = new Map<number, number>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  async change(): Promise<Positions[]> {
    const log = this.#log;
    const prng = this.#prng;
    if (this.#heads.size < 4 || (this.#heads.size < 12 && prng.chance(0.05))) {
      const id = log.nextId();
      log.create({ id, name: `stream-${id}`, epoch: EPOCH, config: configOf({ bytes: 500_000 }) });
      this.#heads.set(id, 0);
    }
    const id = prng.pick([...this.#heads.keys()]);
    if (prng.chance(0.03) && this.#heads.size > 4) {
      log.remove(id);
      this.#heads.delete(id);
    } else {
      this.#append(id, prng.between(1, 60));
    }
    await log.commit();
    return [...this.#heads].map(([id, committed]) => ({ id, floor: log.floor(id), committed }));
  }

  #append(id: number, count: number): void {
    const log = this.#log;
    const head = this.#heads.get(id) ?? 0;
    const sizes = Array.from({ length: count }, (_, index) => sizeOfSeq(head + 1 + index));
    log.append(id, runOf(id, head + 1, sizes), 0);
    this.#heads.set(id, head + count);
    log.applyRetention(id, 0);
    if (this.#prng.chance(0.1)) log.trim(id, this.#prng.below(head + 2));
  }
}

/** A thread that reads at positions that it is told of. */
class Reader {
  bytesRead = 0;
  readonly #worker: Worker;
  readonly #ended: Promise<unknown[]>;
  #unanswered = 0;
  #caughtUp: () => void = () => undefined;

  constructor(directory: string, seed: number) {
    this.#worker = new Worker(READER_FILE, { workerData: { directory, seed } });
    this.#ended = once(this.#worker, 'exit');
    this.#worker.on('message', (bytesRead: number) => {
      this.bytesRead = bytesRead;
      if (--this.#unanswered === 0) this.#caughtUp();
    });
  }

  tell(streams: readonly Positions[]): void {
    this.#unanswered++;
    this.#worker.postMessage(streams);
  }

  async catchUp(): Promise<void> {
    if (this.#unanswered === 0) return;
    const caughtUp = new Promise<void>((resolve) => {
      this.#caughtUp = resolve;
    });
    await withDeadline('a reader to catch up', Promise.race([caughtUp, this.#ended]));
  }

  async end(): Promise<void> {
    this.#worker.postMessage('end');
    assert.deepEqual(await withDeadline('a reader to end', this.#ended), [0]);
  }
}

describe('a log is read on several threads while another writes it', () => {
  it('each reads committed events only, whole and in order, while others are appended, trimmed and deleted (I1, I5)', async () => {
    const stage = lmdbStage();
    const streams = new Streams(stage.log);
    const readers = Array.from({ length: READERS }, (_, seed) => new Reader(stage.directory, seed));
    for (let round = 0; round < ROUNDS; round++) {
      for (let commit = 0; commit < COMMITS_PER_ROUND; commit++) {
        const positions = await streams.change();
        for (const reader of readers) reader.tell(positions);
      }
      await Promise.all(readers.map((reader) => reader.catchUp()));
    }
    await Promise.all(readers.map((reader) => reader.end()));
    for (const { bytesRead } of readers) assert.ok(bytesRead > 1_000_000, `${bytesRead} bytes were read`);
    await settleDeletes(stage.log);
    await stage.dispose();
  });
});

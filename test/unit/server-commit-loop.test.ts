import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED, Appender } from '#gapless/ring/append.js';
import { closeStream, openStream, readPositions } from '#gapless/ring/lifecycle.js';
import { createLogStatus, LogStatus } from '#gapless/ring/log-status.js';
import { createRings, Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { CommitLoop } from '#gapless/server/log/commit-loop.js';
import { MemoryLog, MemoryMedium } from '../support/memory-log.js';

const NOW_MS = 1_700_000_000_000;
const RETENTION = { events: 2, bytes: 0, ageMs: 0 };
const SLOTS = 2;

/** A commit loop over a log whose commits end when the test says so. */
class Stage {
  readonly rings = new Rings(createRings({ streamsMax: SLOTS, memoryBytes: 2 ** 16, durable: true }));
  readonly wakes = new Wakes(createWakes(1, SLOTS, 1), this.rings);
  readonly log = new MemoryLog(new MemoryMedium());
  readonly loop = new CommitLoop({
    rings: this.rings,
    wakes: this.wakes,
    log: this.log,
    status: new LogStatus(createLogStatus()),
    logBytesMax: 0,
    nowMs: () => NOW_MS,
    nowSeconds: () => 0,
  });
  readonly #appender = new Appender(this.rings);
  readonly #batch = new FrameBatch(1024);
  #end: () => void = () => undefined;

  open(slot: number): StreamHandle {
    const epoch = `epoch${slot}epoch`;
    return openStream(this.rings, slot, { epoch, retention: RETENTION, dataBytesMax: 4096, nowMs: NOW_MS });
  }

  create(slot: number, done: () => void = () => undefined): StreamHandle {
    const handle = this.open(slot);
    const config = { retention: RETENTION, overflow: 'evict' as const, ttlMs: 0 };
    this.loop.create(handle, { name: `s${slot}`, epoch: handle.epoch, config }, done);
    return handle;
  }

  append(stream: StreamHandle, count = 1): void {
    this.#batch.reset();
    for (let i = 0; i < count; i++) this.#batch.pushText(Buffer.from('x'), 0, 1, null);
    assert.equal(this.#appender.append(stream, this.#batch, NOW_MS, ANY_HEAD), APPENDED);
    this.wakes.tell(stream.slot, this.#appender.toTell, -1);
  }

  /** Begins a commit, and has the medium take its time. */
  beginCommit(): Promise<boolean> {
    this.log.slowCommits(
      () =>
        new Promise((resolve) => {
          this.#end = resolve;
        }),
    );
    return this.loop.commit();
  }

  /** The medium has it. */
  async endCommit(commit: Promise<unknown>): Promise<void> {
    this.log.slowCommits(null);
    this.#end();
    await commit.catch(() => undefined);
  }

  at(stream: StreamHandle) {
    const positions = readPositions(this.rings, stream);
    assert.ok(positions !== null);
    return positions;
  }
}

describe('what is staged while a commit is under way', () => {
  let stage: Stage;
  let stream: StreamHandle;

  beforeEach(async () => {
    stage = new Stage();
    stream = stage.create(0);
    await stage.loop.commit();
  });

  test('is not shown with it, when a close has read on meanwhile (I4)', async () => {
    let closed = false;
    stage.append(stream);
    const commit = stage.beginCommit();
    stage.append(stream);
    closeStream(stage.rings, stream, NOW_MS);
    stage.loop.close(0, () => {
      closed = true;
    });
    await stage.endCommit(commit);
    assert.deepEqual([stage.at(stream).committed, stage.at(stream).closed, closed], [1, false, false]);
    await stage.loop.commit();
    assert.deepEqual([stage.at(stream).committed, stage.at(stream).closed, closed], [2, true, true]);
  });

  test('is not answered with it, neither a creation nor a removal', async () => {
    const answered: string[] = [];
    stage.append(stream);
    const commit = stage.beginCommit();
    stage.create(1, () => answered.push('created'));
    stage.loop.remove(0, () => answered.push('removed'));
    await stage.endCommit(commit);
    assert.deepEqual(answered, []);
    await stage.loop.commit();
    assert.deepEqual(answered, ['created', 'removed']);
  });

  test('does not move the floor with it, which would go back after a crash (I9)', async () => {
    stage.append(stream, 5);
    await stage.loop.commit();
    stage.append(stream);
    const commit = stage.beginCommit();
    stage.loop.applyRetention();
    await stage.endCommit(commit);
    assert.equal(stage.at(stream).logFloor, 1);
    await stage.loop.commit();
    assert.equal(stage.at(stream).logFloor, 4);
  });

  test('comes after what the commit held, when that fails and is committed with it', async () => {
    const answered: string[] = [];
    stage.create(1, () => answered.push('first'));
    stage.append(stream);
    stage.log.failCommits(1, 'io');
    const commit = stage.beginCommit();
    stage.append(stream);
    stage.loop.remove(1, () => answered.push('second'));
    await stage.endCommit(commit);
    assert.deepEqual([stage.at(stream).committed, answered], [0, []]);
    await stage.loop.commit();
    assert.deepEqual([stage.at(stream).committed, answered], [2, ['first', 'second']]);
  });
});

test('a log that fails for long has any number of commands wait for it', async () => {
  const stage = new Stage();
  const stream = stage.create(0);
  await stage.loop.commit();
  stage.log.failCommits(1, 'full');
  const commands = 200_000;
  let done = 0;
  for (let command = 0; command < commands; command++) {
    stage.loop.acknowledge({ slot: stream.slot, subscriber: 'a', cursor: `${stream.epoch}.0` }, () => done++);
  }
  await assert.rejects(async () => stage.loop.commit(), { fault: 'full' });
  await stage.loop.commit();
  assert.equal(done, commands);
});

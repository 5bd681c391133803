import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { LogError } from '#gapless/storage/event-log.js';
import { LmdbReader } from '#gapless/storage/lmdb/lmdb-reader.js';
import { mountSmallDisk, NO_SMALL_DISK, unmountDisk } from '../support/small-disk.js';
import { configOf, EPOCH, type LogStage, lmdbStage, readAll, runOf, sizesOf } from '../unit/storage-stage.js';

const disk = mountSmallDisk(20);

describe('the disk of a log is full', { skip: disk === null && NO_SMALL_DISK }, () => {
  let directory = '';
  let stage: LogStage;
  let heads: Map<number, number>;
  let tests = 0;

  before(() => assert.ok(disk !== null));
  after(() => {
    if (disk !== null) unmountDisk(disk);
  });

  beforeEach(() => {
    directory = join(disk ?? '', `log-${tests++}`);
    mkdirSync(directory);
    stage = lmdbStage(directory);
    heads = new Map();
  });
  afterEach(async () => {
    await stage.dispose();
  });

  function create(): number {
    const id = stage.log.nextId();
    stage.log.create({ id, name: `stream-${id}`, epoch: EPOCH, config: configOf() });
    heads.set(id, 0);
    return id;
  }

  function append(id: number, count: number): void {
    const head = heads.get(id) ?? 0;
    stage.log.append(id, runOf(id, head + 1, sizesOf(count, 1000)), 0);
    heads.set(id, head + count);
  }

  /** Appends until a commit fails, and answers the head of before. */
  async function fill(id: number): Promise<number> {
    for (let commits = 0; commits < 1000; commits++) {
      const committed = heads.get(id) ?? 0;
      append(id, 50);
      try {
        await stage.log.commit();
      } catch (error) {
        assert.ok(error instanceof LogError);
        assert.equal(error.fault, 'full');
        assert.equal(error.cause, undefined, 'it was noticed before LMDB did, which may not survive it');
        assert.match(error.message, /^\/.*events\.mdb cannot grow: no space is left$/);
        return committed;
      }
    }
    return assert.fail('it never filled up');
  }

  async function assertStillFull(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      await assert.rejects(async () => stage.log.commit(), { name: 'LogError', fault: 'full' });
    }
  }

  /** Deleting takes a few commits that fail, for each deletes a little. */
  async function commitWithin(commitsMax: number): Promise<void> {
    for (let commits = 0; commits < commitsMax; commits++) {
      try {
        return await stage.log.commit();
      } catch (error) {
        assert.ok(error instanceof LogError);
      }
    }
    assert.fail('the space of what was deleted is not used');
  }

  async function assertWhole(id: number, head: number): Promise<void> {
    assert.equal(readAll(stage, id, 0, 100_000).lastSeq, head);
    const expected = runOf(id, 1, sizesOf(head, 1000)).frames;
    assert.ok(readAll(stage, id, 0, 100_000).frames.equals(expected));
    assert.ok(stage.reader instanceof LmdbReader);
    assert.deepEqual([...stage.reader.verify()], []);
  }

  it('says so, goes on reading, and commits what was staged when there is space again', async () => {
    const ballast = join(directory, 'ballast');
    writeFileSync(ballast, Buffer.alloc(6 * 1024 * 1024));
    const id = create();
    const committed = await fill(id);
    await assertWhole(id, committed);
    append(id, 1);
    await assertStillFull(3);
    await assertWhole(id, committed);
    rmSync(ballast);
    await stage.log.commit();
    await assertWhole(id, heads.get(id) ?? 0);
    stage = await stage.reopen();
    await assertWhole(id, heads.get(id) ?? 0);
  });

  it('loses what was staged when the process ends, and nothing else', async () => {
    const id = create();
    const committed = await fill(id);
    stage = await stage.reopen();
    assert.equal(stage.loaded[0]?.head, committed);
    await assertWhole(id, committed);
  });

  it('is made use of again where a stream is removed, or trimmed, though nothing else can be written', async () => {
    const [id, removed, trimmed] = [create(), create(), create()];
    append(removed, 5000);
    append(trimmed, 5000);
    await stage.log.commit();
    await fill(id);
    stage.log.remove(removed);
    await commitWithin(30);
    await fill(id);
    stage.log.trim(trimmed, 4990);
    await commitWithin(30);
    await assertWhole(id, heads.get(id) ?? 0);
    stage = await stage.reopen();
    assert.deepEqual(
      stage.loaded.map((stream) => [stream.id, stream.floor, stream.head]),
      [
        [id, 1, heads.get(id)],
        [trimmed, 4990, 5000],
      ],
    );
  });
});

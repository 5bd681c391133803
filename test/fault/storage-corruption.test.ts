import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LogCorruption } from '#gapless/storage/event-log.js';
import { readMeta } from '#gapless/storage/lmdb/lmdb-format.js';
import { checkStore } from '#gapless/storage/lmdb/store-check.js';
import { STORE_FILE } from '#gapless/storage/lmdb/store-file.js';
import { withDeadline } from '../support/deadline.js';
import { Prng, seededPrng } from '../support/prng.js';
import {
  configOf,
  EPOCH,
  lmdbStage,
  makeDirectory,
  runOf,
  settleDeletes,
  sizeOfSeq,
} from '../unit/storage-stage.js';

const READER_FILE = fileURLToPath(new URL('./storage-corruption-reader.js', import.meta.url));
const DAMAGES = 150;
const PAGE_BYTES = 4096;

/** A store with a past: streams that came and went, floors inside of blocks, free pages. */
async function makeStore(streams: number): Promise<string> {
  const directory = makeDirectory();
  const stage = lmdbStage(directory);
  const { log } = stage;
  const prng = new Prng(streams);
  const heads = new Map<number, number>();
  for (let commit = 0; commit < 100; commit++) {
    for (let i = 0; i < streams / 50; i++) {
      const created = log.nextId();
      log.create({ id: created, name: `stream-${created}`, epoch: EPOCH, config: configOf() });
      heads.set(created, 0);
      const id = prng.pick([...heads.keys()]);
      const head = heads.get(id) ?? 0;
      const sizes = Array.from({ length: 1 + prng.below(20) }, (_, index) => sizeOfSeq(head + 1 + index));
      log.append(id, runOf(id, head + 1, sizes), commit);
      heads.set(id, head + sizes.length);
      if (prng.chance(0.2)) log.trim(id, prng.below(head + 2));
      if (prng.chance(0.5) && heads.size > 5) {
        log.remove(id);
        heads.delete(id);
      }
    }
    await log.commit();
  }
  await settleDeletes(log);
  const { loaded, reader, log: reopened } = await stage.reopen();
  writeFileSync(join(directory, 'expected.json'), JSON.stringify(loaded));
  await reader.dispose();
  await reopened.dispose();
  cutSpare(join(directory, STORE_FILE));
  return directory;
}

/** Takes away what the file has in store for the next commits: damage there would be none. */
function cutSpare(file: string): void {
  const bytes = readFileSync(file);
  const metas = [readMeta(bytes), readMeta(bytes.subarray(PAGE_BYTES))] as const;
  const [{ commit, lastPage }, other] = metas;
  const pages = 1 + (commit > other.commit ? lastPage : other.lastPage);
  if (bytes.length > pages * PAGE_BYTES) truncateSync(file, pages * PAGE_BYTES);
}

describe('the file of a log is damaged', () => {
  for (const streams of [50, 1000]) {
    it(`in ${DAMAGES} ways, ${streams} streams: what is read is right or refused, and no process dies of it`, async (context) => {
      const original = await makeStore(streams);
      const directory = makeDirectory();
      const seed = seededPrng(context).below(1_000_000);
      const args = [READER_FILE, original, directory, String(seed), String(DAMAGES)];
      const reader = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
      context.after(() => reader.kill('SIGKILL'));
      let [said, complaints] = ['', ''];
      reader.stdout.on('data', (text: Buffer) => {
        said += text;
      });
      reader.stderr.on('data', (text: Buffer) => {
        complaints = `${complaints}${text}`.slice(-4000);
      });
      const [code, signal] = await withDeadline('all damages', once(reader, 'close'), 120_000);
      const last = readFileSync(join(original, 'last.txt'), 'utf8');
      assert.deepEqual({ code, signal }, { code: 0, signal: null }, `${last}: ${complaints}`);
      const { refused, right } = JSON.parse(said) as { refused: number; right: number };
      context.diagnostic(`${refused} were refused, ${right} read right`);
      assert.equal(refused + right, DAMAGES);
      assert.ok(refused > DAMAGES / 4, `only ${refused} were refused`);
      rmSync(original, { recursive: true });
      rmSync(directory, { recursive: true });
    });
  }

  it('by its end missing: says what is missing, and what to do', async () => {
    const directory = await makeStore(50);
    const file = join(directory, STORE_FILE);
    checkStore(file);
    truncateSync(file, statSync(file).size - 40_000);
    assert.throws(
      () => checkStore(file),
      (error) =>
        error instanceof LogCorruption &&
        /events\.mdb is damaged, it is truncated: it has \d+ bytes.*: restore it from a copy$/.test(
          error.message,
        ),
    );
    rmSync(directory, { recursive: true });
  });

  it('not at all, where the last pages of the file were never written because they are free', async () => {
    const stage = lmdbStage();
    const { log, directory } = stage;
    log.create({ id: 1, name: 'a', epoch: EPOCH, config: configOf() });
    for (let seq = 1; seq < 200; seq++) {
      log.append(1, runOf(1, seq, [seq % 7 === 0 ? 60_000 : 100]), 0);
      log.trim(1, seq - 3);
      await log.commit();
      checkStore(join(directory, STORE_FILE));
    }
    await stage.dispose();
  });
});

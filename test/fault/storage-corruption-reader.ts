import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LogCorruption, type LoggedStream } from '#gapless/storage/event-log.js';
import { STORE_FILE } from '#gapless/storage/lmdb/store-file.js';
import { Prng } from '../support/prng.js';
import {
  after,
  configOf,
  EPOCH,
  frameOf,
  type LogStage,
  lmdbStage,
  runOf,
  sizeOfSeq,
} from '../unit/storage-stage.js';

/**
 * Damages a store in one way after another, and does with each what a broker would: opens it, reads all of it, goes on
 * writing and deleting. Ends with 1 where something wrong was taken for right; the test that started it sees if it died.
 */

const PAGE_BYTES = 4096;

const [original = '', directory = '', first = '0', count = '0'] = process.argv.slice(2);
const whole = readFileSync(join(original, STORE_FILE));
const expected = JSON.parse(readFileSync(join(original, 'expected.json'), 'utf8')) as LoggedStream[];
const outcomes = { refused: 0, right: 0 };

for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const { bytes, how } = damage(new Prng(seed));
  writeFileSync(join(original, 'last.txt'), `seed ${seed}: ${how}`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  writeFileSync(join(directory, STORE_FILE), bytes);
  try {
    await useAll();
    outcomes.right++;
  } catch (error) {
    if (!(error instanceof LogCorruption)) throw error;
    outcomes.refused++;
  }
}
console.log(JSON.stringify(outcomes));

function damage(prng: Prng): { bytes: Buffer; how: string } {
  const bytes = Buffer.from(whole);
  const page = prng.below(whole.length / PAGE_BYTES);
  const other = prng.below(whole.length / PAGE_BYTES);
  const at = page * PAGE_BYTES;
  switch (prng.below(5)) {
    case 0:
      return { bytes: bytes.subarray(0, prng.below(whole.length)), how: 'cut off' };
    case 1:
      bytes.fill(0, at, at + PAGE_BYTES);
      return { bytes, how: `page ${page} zeroed` };
    case 2:
      whole.copy(bytes, at, other * PAGE_BYTES, (other + 1) * PAGE_BYTES);
      return { bytes, how: `page ${page} is a copy of ${other}` };
    default: {
      const flips = Array.from({ length: 1 + prng.below(8) }, () =>
        // Half of them where pages say what they are.
        prng.chance(0.5)
          ? prng.below(whole.length)
          : prng.below(whole.length / PAGE_BYTES) * PAGE_BYTES + prng.below(200),
      );
      for (const flip of flips) bytes[flip] = (bytes[flip] ?? 0) ^ (1 << prng.below(8));
      return { bytes, how: `a bit turned in each of the bytes ${flips.join(', ')}` };
    }
  }
}

async function useAll(): Promise<void> {
  const stage = lmdbStage(directory);
  try {
    if (JSON.stringify(stage.loaded) !== JSON.stringify(expected)) throw new Error('the streams are others');
    for (const stream of expected) readStream(stage, stream);
    writeOn(stage);
  } finally {
    await stage.reader.dispose();
    await stage.log.dispose();
  }
}

function readStream({ reader }: LogStage, { id, floor, head }: LoggedStream): void {
  for (let afterSeq = floor - 1; afterSeq < head; ) {
    const run = reader.read(id, after(afterSeq, 50_000, floor));
    if (run === null) throw new Error(`stream ${id} ends after ${afterSeq}`);
    const frames: Uint8Array[] = [];
    for (let seq = afterSeq + 1; seq <= run.lastSeq; seq++) frames.push(frameOf(id, seq, sizeOfSeq(seq)));
    if (!Buffer.concat(frames).equals(run.frames))
      throw new Error(`stream ${id} has other events after ${afterSeq}`);
    afterSeq = run.lastSeq;
  }
}

/** Into blocks that are there, into new pages and freed ones; and what is there goes. */
function writeOn({ log }: LogStage): void {
  for (const { id, head } of expected) log.append(id, runOf(id, head + 1, [10, 20_000]), 1);
  log.commit();
  for (const { id, head } of expected) log.trim(id, head);
  const id = log.nextId();
  log.create({ id, name: 'new', epoch: EPOCH, config: configOf() });
  for (let i = 0; i < 10; i++) {
    log.append(id, runOf(id, 3 * i + 1, [1000, 30_000, 5]), 1);
    log.commit();
  }
  for (let commits = 0; log.hasPendingDeletes && commits < 100; commits++) log.commit();
}

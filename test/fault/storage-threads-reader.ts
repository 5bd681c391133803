import { parentPort, workerData } from 'node:worker_threads';
import { openLmdbReader } from '#gapless/storage/lmdb/lmdb-reader.js';
import { Prng } from '../support/prng.js';
import { after, frameOf, sizeOfSeq } from '../unit/storage-stage.js';

/** Reads what the writer on the main thread says it has, as a replay pool does, and checks each byte. */

export interface Positions {
  readonly id: number;
  readonly floor: number;
  readonly committed: number;
}

const { directory, seed } = workerData as { directory: string; seed: number };
const reader = openLmdbReader(directory);
const prng = new Prng(seed);
let bytesRead = 0;

parentPort?.on('message', (streams: readonly Positions[] | 'end') => {
  if (streams === 'end') {
    void reader.dispose().then(() => parentPort?.close());
    return;
  }
  for (const stream of streams) read(stream);
  parentPort?.postMessage(bytesRead);
});

/** The writer may have moved on meanwhile: what is gone by now is null, and never something else. */
function read({ id, floor, committed }: Positions): void {
  if (committed < floor) return;
  const afterSeq = floor - 1 + prng.below(committed - floor + 1);
  const run = reader.read(id, after(afterSeq, 1 + prng.below(200_000), floor));
  if (run === null) return;
  const expected: Uint8Array[] = [];
  for (let seq = afterSeq + 1; seq <= run.lastSeq; seq++) expected.push(frameOf(id, seq, sizeOfSeq(seq)));
  if (run.firstSeq !== afterSeq + 1 || !Buffer.concat(expected).equals(run.frames)) {
    throw new Error(`stream ${id} has other events after ${afterSeq}`);
  }
  bytesRead += run.frames.length;
}

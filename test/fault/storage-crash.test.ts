import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LmdbReader } from '#gapless/storage/lmdb/lmdb-reader.js';
import { withDeadline } from '../support/deadline.js';
import { Prng } from '../support/prng.js';
import { after, frameOf, lmdbStage, makeDirectory, settleDeletes, sizeOfSeq } from '../unit/storage-stage.js';

const WRITER_FILE = fileURLToPath(new URL('./storage-crash-writer.js', import.meta.url));
const ROUNDS = 20;
const COMMITS_MAX = 25;

interface Said {
  readonly id: number;
  readonly head: number;
  readonly floor: number;
}

/** Lets a writer commit, and kills it while it is busy with the next commit. Answers all that it said. */
async function runAndKill(directory: string, seed: number, commits: number): Promise<Said[][]> {
  const writer = spawn(process.execPath, [WRITER_FILE, directory, String(seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said: Said[][] = [];
  const lines = createInterface({ input: writer.stdout });
  lines.on('line', (line) => {
    if (said.push(JSON.parse(line) as Said[]) === commits) writer.kill('SIGKILL');
  });
  const [, signal] = await withDeadline('the writer to be killed', once(writer, 'close'));
  assert.equal(signal, 'SIGKILL', 'it did not end by itself');
  return said;
}

/** What was said is there, whole; and there is nothing that was not written. */
async function checkAfter(directory: string, said: readonly Said[]): Promise<void> {
  const stage = lmdbStage(directory);
  const { log, reader, loaded } = stage;
  assert.ok(reader instanceof LmdbReader);
  assert.deepEqual([...reader.verify()], []);
  const byId = new Map(loaded.map((stream) => [stream.id, stream]));
  for (const { id, head, floor } of said) {
    const stream = byId.get(id);
    // The commit that it was killed in may have removed one, or got through with more events.
    if (stream === undefined) continue;
    assert.ok(stream.head >= head, `stream ${id}: head ${stream.head} of ${head}`);
    assert.ok(stream.floor >= floor, 'I9: a floor never goes back');
  }
  assert.ok(
    said.filter(({ id }) => !byId.has(id)).length <= 7,
    'no more are gone than one commit can remove',
  );
  for (const { id, head, floor } of loaded) {
    for (let afterSeq = floor - 1; afterSeq < head; ) {
      const run = reader.read(id, after(afterSeq, 100_000, floor));
      assert.ok(run !== null);
      const expected: Uint8Array[] = [];
      for (let seq = afterSeq + 1; seq <= run.lastSeq; seq++) expected.push(frameOf(id, seq, sizeOfSeq(seq)));
      assert.ok(Buffer.concat(expected).equals(run.frames), `I3: stream ${id} after ${afterSeq}`);
      afterSeq = run.lastSeq;
    }
  }
  await settleDeletes(log);
  assert.deepEqual([...reader.verify()], []);
  await reader.dispose();
  await log.dispose();
}

describe('the writer of a log is killed', () => {
  it(`${ROUNDS} times in the same directory: each time every commit that returned is there, whole (I3, I4)`, async () => {
    const directory = makeDirectory();
    const prng = new Prng(41);
    for (let round = 0; round < ROUNDS; round++) {
      const said = await runAndKill(directory, round, 1 + prng.below(COMMITS_MAX));
      await checkAfter(directory, said.at(-1) ?? []);
    }
    rmSync(directory, { recursive: true });
  });
});

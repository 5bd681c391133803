import { writeSync } from 'node:fs';
import { openLmdbLog } from '#gapless/storage/lmdb/open-lmdb-log.js';
import { Prng } from '../support/prng.js';
import { configOf, EPOCH, runOf, sizeOfSeq } from '../unit/storage-stage.js';

/**
 * Commits for ever in a directory, and says after each commit what must outlive whatever comes: one JSON line with the
 * head and the floor of every stream. The test kills it.
 */

const [directory = '', seed = '0'] = process.argv.slice(2);
const prng = new Prng(Number(seed));
const log = openLmdbLog({ directory, syncEachCommit: true });
const heads = new Map<number, number>();
for (const { id, head } of log.load()) heads.set(id, head);

for (;;) {
  for (let i = prng.below(6); i >= 0; i--) change();
  log.commit();
  const streams = [...heads].map(([id, head]) => ({ id, head, floor: log.floor(id) }));
  // To the kernel in one piece before anything else is done: no line is lost when the process is killed.
  writeSync(1, `${JSON.stringify(streams)}\n`);
}

function change(): void {
  const ids = [...heads.keys()];
  const id = ids[prng.below(Math.max(1, ids.length))];
  const what = prng.below(20);
  if (id === undefined || (what === 0 && ids.length < 12)) {
    const created = log.nextId();
    log.create({
      id: created,
      name: `stream-${created}`,
      epoch: EPOCH,
      config: configOf({ bytes: 200_000 }),
    });
    heads.set(created, 0);
    return;
  }
  const head = heads.get(id) ?? 0;
  if (what === 1 && ids.length > 3) {
    log.remove(id);
    heads.delete(id);
  } else if (what === 2) {
    log.trim(id, prng.below(head + 2));
  } else if (what < 6) {
    log.applyRetention(id, head);
  } else {
    const sizes = Array.from({ length: 1 + prng.below(12) }, (_, index) => sizeOfSeq(head + 1 + index));
    log.append(id, runOf(id, head + 1, sizes), head);
    heads.set(id, head + sizes.length);
  }
}

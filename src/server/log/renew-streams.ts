/**
 * What is done with streams whose newest events may be missing: each begins anew, under another epoch. Cursors of
 * before are refused as `epoch_changed`, which is true, and no id is given to a second event (I3).
 */

import { EPOCH_LENGTH, makeEpoch } from '../../core/epoch.js';
import type { EventLog, LoggedStream } from '../../storage/event-log.js';

/** @returns the streams as they are now, all of it on the disk. */
export async function renewStreams(
  log: EventLog,
  streams: readonly LoggedStream[],
  randomBytes: (count: number) => Uint8Array,
): Promise<LoggedStream[]> {
  const renewed = streams.map((stream): LoggedStream => {
    const { name, config, closed, acked } = stream;
    const epoch = makeEpoch(randomBytes(EPOCH_LENGTH));
    const id = log.nextId();
    log.remove(stream.id);
    log.create({ id, name, epoch, config });
    // Who has events of the old epoch is told so when it comes back, and does not join as if it were new.
    for (const [subscriber, cursor] of acked) log.acknowledge(id, subscriber, cursor);
    if (closed) log.close(id);
    return { id, name, epoch, config, closed, floor: 1, head: 0, bytes: 0, acked };
  });
  await log.commit();
  await log.sync();
  return renewed;
}

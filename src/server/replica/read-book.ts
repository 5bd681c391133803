/** Who published to a stream, as the entries of a replicated log tell it. */

import { ProducerBook, type ProducerBounds } from '../../core/producer-book.js';
import { LogError } from '../../storage/event-log.js';
import type { LogEntry } from '../../storage/jetstream/log-entry.js';
import type { ReplicatedLog, StoredEntry } from '../../storage/replicated-log.js';
import { CountedChain } from './counted-chain.js';
import type { ReplicaStream } from './replica-stream.js';

/** Reads it from the log. @throws {LogError} */
export async function readBook(
  log: ReplicatedLog,
  stream: ReplicaStream,
  bounds: ProducerBounds,
): Promise<ProducerBook> {
  const book = new ProducerBook(bounds);
  const after = stream.entry.claimsAfter ?? stream.at;
  const chain = new CountedChain<StoredEntry>(after);
  // More may be taken up while this is read: it goes on to where the stream is then.
  for (let from = after + 1; from <= stream.at; ) {
    const stored = await log.next(stream.name, from);
    if (stored === null) throw new LogError('io', 'an entry that was there is not there');
    if (stored.at > stream.at) break;
    from = stored.at + 1;
    for (const { entry } of chain.take(stored, stream.at)) {
      if (entry.epoch === stream.epoch) recordClaims(book, entry);
    }
  }
  return book;
}

export function recordClaims(book: ProducerBook, { claims, previous, atMs }: LogEntry): void {
  for (const claim of claims) {
    book.record(claim, { first: claim.first, last: claim.last }, { after: previous, atMs });
  }
}

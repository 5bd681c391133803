/**
 * Which of the publishes that wait for a stream of a replicated log make up its next entry, and what the others are
 * told. Judged by what was taken up of the stream: a publish that is accepted wrongly is refused by the log, which
 * compares; one that would be refused because something is missing is judged again after a look at the log.
 */

import { assert } from '../../assert.js';
import type { Placed } from '../../broker/replicated-publish.js';
import { formatCursor } from '../../core/cursor.js';
import { storedBytes } from '../../core/event-parts.js';
import {
  expectedSeq,
  PUBLISH_DUPLICATE,
  PUBLISH_FENCED,
  PUBLISH_FORGOTTEN,
  PUBLISH_GAP,
} from '../../core/producer.js';
import type { BookClaim } from '../../core/producer-book.js';
import { RequestError } from '../../errors.js';
import type { EntryClaim } from '../../storage/jetstream/log-entry.js';
import { heldRefusal } from '../../transport/publish/append-refusal.js';
import type { ReplicaStream } from './replica-stream.js';
import type { Waiting } from './waiting-publish.js';

export interface JudgedGroup {
  readonly accepted: readonly Waiting[];
  /** Where they stand once they are appended. */
  readonly places: readonly Placed[];
  readonly claims: { readonly count: number; readonly list: readonly EntryClaim[] };
  /** Those that have their answer. */
  readonly refused: readonly Waiting[];
  /** One that is only refused if the log has nothing newer; those behind it wait. */
  readonly needsNewest: Waiting | null;
}

/** Publishes in one entry. */
const PUBLISHES_MAX = 1000;
/** Bytes of parts in one entry, unless one publish has more, or a message takes less. */
const GROUP_BYTES_MAX = 256 * 1024;
/** Claims in one entry, of up to 150 bytes each: a header has 64 KiB. */
const CLAIMS_MAX = 400;

type Verdict = 'accept' | 'answered' | 'later' | 'newest';

export function judgeGroup(
  publishes: readonly Waiting[],
  stream: ReplicaStream,
  { bytesMax, isHeld }: { bytesMax: number; isHeld: boolean },
): JudgedGroup {
  const accepted: Waiting[] = [];
  const refused: Waiting[] = [];
  const places: Placed[] = [];
  const list: EntryClaim[] = [];
  const claimed = new Set<string>();
  let { head } = stream.entry;
  let bytes = 0;
  let needsNewest: Waiting | null = null;
  const groupBytesMax = Math.min(GROUP_BYTES_MAX, bytesMax);
  for (const publish of publishes) {
    const { parts, claim } = publish;
    const size = storedBytes(parts);
    if (accepted.length === PUBLISHES_MAX || list.length === CLAIMS_MAX) break;
    if (bytes > 0 && bytes + size > groupBytesMax) break;
    const verdict =
      size > bytesMax ? tooLarge(publish, bytesMax) : judge(publish, stream, { head, claimed, isHeld });
    if (verdict === 'newest') needsNewest = publish;
    if (verdict === 'newest' || verdict === 'later') break;
    if (verdict === 'answered') {
      refused.push(publish);
      continue;
    }
    const place = { first: head + 1, last: head + parts.ends.length };
    if (claim !== null) {
      claimed.add(claim.digest);
      list.push({ ...claim, ...place });
    }
    accepted.push(publish);
    places.push({ epoch: stream.epoch, ...place, isDuplicate: false });
    head = place.last;
    bytes += size;
  }
  return { accepted, places, claims: { count: head - stream.entry.head, list }, refused, needsNewest };
}

function judge(
  publish: Waiting,
  stream: ReplicaStream,
  group: { readonly head: number; readonly claimed: ReadonlySet<string>; readonly isHeld: boolean },
): Verdict {
  // Its timer has answered it.
  if (publish.isSettled) return 'answered';
  const { claim, ifHead } = publish;
  if (claim !== null) {
    // The book is read for the first publish of the queue only; and two of one producer are judged one after the other.
    if (stream.book === null || group.claimed.has(claim.digest)) return 'later';
    const verdict = judgeClaim(publish, claim, stream);
    if (verdict !== 'accept') return verdict;
  }
  if (stream.entry.state !== 'open') {
    const cursor = formatCursor(stream.epoch, stream.entry.head);
    return refuse(publish, new RequestError('stream_closed', undefined, { cursor }));
  }
  if (ifHead !== null && (ifHead.epoch !== stream.epoch || ifHead.seq !== group.head)) {
    if (group.head !== stream.entry.head) return 'later';
    if (!publish.isFresh) return 'newest';
    const head = formatCursor(stream.epoch, group.head);
    return refuse(
      publish,
      new RequestError('head_mismatch', undefined, { head }, { 'Gapless-Cursor': head }),
    );
  }
  if (group.isHeld) return refuse(publish, heldRefusal());
  if (claim !== null && stream.book?.hasRoomFor(claim, group.claimed.size) === false) {
    return refuse(publish, new RequestError('too_many_producers'));
  }
  return 'accept';
}

function judgeClaim(publish: Waiting, claim: BookClaim, stream: ReplicaStream): Verdict {
  const { book } = stream;
  assert(book !== null, 'who published is known before a publish is judged by it');
  switch (book.judge(claim)) {
    case PUBLISH_DUPLICATE: {
      const place = book.placeOf(claim);
      if (place === null) return refuse(publish, new RequestError('publish_forgotten'));
      publish.placed({ epoch: stream.epoch, first: place.first, last: place.last, isDuplicate: true });
      return 'answered';
    }
    case PUBLISH_FORGOTTEN:
      return refuse(publish, new RequestError('publish_forgotten'));
    case PUBLISH_FENCED: {
      const producerEpoch = book.newestOf(claim)?.epoch ?? 0;
      return refuse(publish, new RequestError('producer_fenced', undefined, { producerEpoch }));
    }
    case PUBLISH_GAP: {
      if (!publish.isFresh) return 'newest';
      const expected = expectedSeq(claim, book.newestOf(claim));
      return refuse(publish, new RequestError('producer_gap', undefined, { expected }));
    }
    default:
      return 'accept';
  }
}

function tooLarge(publish: Waiting, limit: number): Verdict {
  const code = publish.parts.ends.length === 1 ? 'event_too_large' : 'batch_too_large';
  return refuse(publish, new RequestError(code, 'larger than a message that the log takes', { limit }));
}

function refuse(publish: Waiting, error: RequestError): Verdict {
  publish.refused(error);
  return 'answered';
}

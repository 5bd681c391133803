/** What an edge is told of a stream that its client is to be given. */

import { formatCursor } from '../../core/cursor.js';
import type { EventIds, StreamIdentity } from '../event-id.js';
import type { FollowStream, LostStream, WholeStream } from '../messages.js';
import { changeNotices } from '../session/relay.js';
import type { MessageStream } from './message-stream.js';

/** Who gets it: a session, or what stands for one. */
interface StreamReader {
  /** Empty where there are no sessions. */
  readonly id: string;
  /** Whether the client knows ids without a message. */
  readonly primes: boolean;
  /** What the server can do. */
  readonly capabilities: readonly string[];
}

/** @param afterSeq see FollowStream. */
export function follow(
  { id, primes, capabilities }: StreamReader,
  { prefix, calls, stream, isOwn, farewells }: MessageStream,
  afterSeq: number | null,
): FollowStream {
  return {
    verdict: 'follow',
    session: id,
    prefix,
    calls,
    primes,
    stream,
    afterSeq,
    isNew: false,
    notices: isOwn ? changeNotices(capabilities) : null,
    endpoint: null,
    farewells,
  };
}

export function wholeStream(
  { id, primes }: StreamReader,
  { prefix, calls }: MessageStream,
  messages: readonly string[],
): WholeStream {
  return { verdict: 'whole', session: id, prefix, calls, primes, messages };
}

/** @param stream and the seq after which it was to be read. */
export function lostStream(
  ids: EventIds,
  stream: StreamIdentity & { seq: number },
  { id, primes }: StreamReader,
): LostStream {
  const { calls, epoch, seq } = stream;
  const cursor = formatCursor(epoch, seq);
  return { verdict: 'lost', session: id, prefix: ids.prefix(stream), calls, primes, cursor };
}

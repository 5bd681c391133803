/** Streams of calls that were answered before this process began, and what is left to say of a stream that is closed. */

import type { StreamRef } from '../../broker/edge-stream.js';
import type { EventPosition } from '../event-id.js';
import type { McpStreams } from './mcp-streams.js';
import type { MessageStream } from './message-stream.js';
import { isNote } from './stream-notes.js';

export interface AnsweredStream {
  readonly ref: StreamRef;
  readonly endsWithNote: boolean;
}

/** Null: it is no more, or was never answered. @throws {RequestError} nobody can say now */
export async function findAnswered(
  streams: McpStreams,
  { key: name, epoch }: EventPosition,
): Promise<AnsweredStream | null> {
  const ref = await streams.find(name);
  const at = ref === null ? null : streams.positions(ref);
  if (ref === null || at === null || !at.closed || ref.epoch !== epoch) return null;
  const [newest] = at.head === 0 ? [] : await streams.read(ref, at.head - 1);
  return { ref, endsWithNote: newest !== undefined && isNote(newest.type) };
}

/** Whether a stream that is closed may have a message after this seq. @throws {RequestError} nobody can say now */
export async function hasMessageAfter(
  streams: McpStreams,
  { stream, endsWithNote }: MessageStream,
  afterSeq: number,
): Promise<boolean> {
  // Before its end is committed there may be one that cannot be read yet.
  if (!endsWithNote || streams.positions(stream)?.closed !== true) return true;
  for (let seq = afterSeq; ; ) {
    const events = await streams.read(stream, seq);
    if (events.length === 0) return false;
    for (const event of events) {
      if (!isNote(event.type)) return true;
      seq = event.seq;
    }
  }
}

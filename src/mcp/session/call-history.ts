/** What has become of a stream in another process, read from what is in it. */

import type { ParsedEvent } from '../../core/sse-parse.js';
import { readMessages } from '../json-rpc.js';
import type { LeftStream, McpStreams } from '../stream/mcp-streams.js';
import type { CallsBefore } from '../stream/message-stream.js';
import { type CallNote, isNote, NOTE_TYPES, reachedOf } from '../stream/stream-notes.js';

export interface StreamHistory extends CallsBefore {
  /** Null: it is no stream of a call, or its beginning is gone. */
  readonly note: CallNote | null;
  /** Where the server's stream can be taken up; null: nobody knows. */
  readonly reached: string | null;
  /** The broker that took it over last, where several share a log; null: none. */
  readonly taken: string | null;
}

/** @param afterSeq of the first event that is looked at. @returns null where that is gone. @throws {RequestError} not now */
export async function readHistory(
  streams: Pick<McpStreams, 'read'>,
  { ref, head }: Pick<LeftStream, 'ref' | 'head'>,
  afterSeq = 0,
): Promise<StreamHistory | null> {
  let note: CallNote | null = null;
  let reached: string | null = null;
  let taken: string | null = null;
  let endsWithNote = false;
  const answered = new Set<string>();
  const cancelled = new Set<string>();
  for (let seq = afterSeq; seq < head; ) {
    const events = await streams.read(ref, seq);
    if (events.length === 0) return null;
    for (const event of events) {
      seq = event.seq;
      endsWithNote = isNote(event.type);
      const text = textOf(event);
      if (event.type === NOTE_TYPES.taken) taken = text;
      reached = reachedAt(event) ?? (endsWithNote ? reached : null);
      if (event.type === NOTE_TYPES.call) note = JSON.parse(text) as CallNote;
      else if (event.type === NOTE_TYPES.cancelled) cancelled.add(text);
      else if (!endsWithNote) for (const id of answersIn(text)) answered.add(id);
    }
  }
  return { note, reached, taken, answered, cancelled, endsWithNote };
}

/** Where the server's stream can be taken up after an event; null: nobody knows. */
export function reachedAt(event: ParsedEvent): string | null {
  return event.type === NOTE_TYPES.reached ? textOf(event) : reachedOf(event.type);
}

export function textOf({ data }: ParsedEvent): string {
  return Buffer.from(data).toString();
}

function answersIn(text: string): string[] {
  const messages = readMessages(text) ?? [];
  return messages.flatMap(({ kind, id }) => (kind === 'response' && id !== null ? [id] : []));
}

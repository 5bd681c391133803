import { readMessages } from '../json-rpc.js';
import { type MessageSink, UpstreamError } from './upstream.js';

/**
 * Gives the messages of a body, or of an event of it, to a sink.
 * @param reached id of the event, by which the stream is taken up after it; null: it has none.
 * @returns as the sink does: a promise where there is no room. @throws {UpstreamError} `rubbish`
 */
export function pushAll(text: string, sink: MessageSink, reached: string | null): Promise<void> | void {
  const messages = readMessages(text);
  if (messages === null) throw new UpstreamError('rubbish');
  let room: Promise<void> | undefined;
  for (const message of messages) room = sink.push(message, reached) ?? room;
  return room;
}

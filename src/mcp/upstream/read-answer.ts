/** What a server of Streamable HTTP answers to a call, on its way to whoever waits for it. */

import { SseDecoder } from '../../client/sse-decoder.js';
import { readMessages } from '../json-rpc.js';
import { isEventStream } from './http-answer.js';
import { readEvents, readText } from './http-request.js';
import type { HttpResponse } from './http-response.js';
import { pushAll } from './push-all.js';
import { LINGER_MS, type MessageSink, type Reply, UpstreamError } from './upstream.js';

/** When the server does not say; as in its clients. */
export const RESUME_MS = 1000;

/** Where an event stream can be taken up again. */
export interface Resumable {
  readonly lastId: string;
  readonly retryMs: number;
}

/**
 * Gives the messages of an answer to the sink, in their order.
 * @returns where to take it up again if it ended or broke too soon; null: nowhere.
 * @throws {UpstreamError}
 */
export async function readAnswer(
  response: HttpResponse,
  sink: MessageSink,
  messageBytesMax: number,
): Promise<Resumable | null> {
  if (!isEventStream(response)) {
    await pushAll(await readText(response, messageBytesMax), sink, null);
    if (!sink.isClosed) throw new UpstreamError('rubbish');
    return null;
  }
  const decoder = new SseDecoder();
  let lastId = '';
  let lingering: NodeJS.Timeout | undefined;
  try {
    await readEvents(response, messageBytesMax, {
      decoder,
      take: ({ id, type, data }) => {
        if (id !== null) lastId = id;
        if (data === null || data === '' || (type !== '' && type !== 'message')) {
          if (id !== null && id !== '') sink.reached?.(id);
          return undefined;
        }
        const room = pushAll(data, sink, lastId === '' ? null : lastId);
        if (sink.isClosed) lingering ??= setTimeout(() => response.destroy(), LINGER_MS);
        return room;
      },
    });
  } catch (error) {
    const isResumable = error instanceof UpstreamError && error.reason === 'broken' && lastId !== '';
    if (!isResumable && !sink.isClosed) throw error;
  } finally {
    clearTimeout(lingering);
  }
  return lastId === '' ? null : { lastId, retryMs: decoder.retryMs ?? RESUME_MS };
}

/** What fails of a call answers it. */
export function failInto(sink: MessageSink, call: Promise<void>): void {
  void call.catch((error: unknown) => {
    if (!(error instanceof UpstreamError)) throw error;
    sink.fail(error.toRpcError());
  });
}

/** What a client can do something about: show who it is, or that it may. */
const OF_WHO_ASKS: ReadonlySet<number> = new Set([401, 403]);

/** An HTTP error: what it says goes to the client, where it is an answer to the call. @throws {UpstreamError} `refused` */
export function tellRefusal(reply: Reply, sink: MessageSink): void {
  const { status, body } = reply;
  if (OF_WHO_ASKS.has(status) && sink.refused?.(reply) === true) return;
  for (const message of readMessages(body) ?? []) if (message.kind === 'response') void sink.push(message);
  if (!sink.isClosed) throw new UpstreamError('refused', status);
}

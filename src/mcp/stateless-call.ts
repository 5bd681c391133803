/**
 * A request of the revision 2026-07-28, which has no sessions and whose streams cannot be resumed: it is passed on as it
 * is, and so is what the server makes of it. When the client hangs up, so does the front: that is how a call is cancelled.
 */

import type { ClientRequest, IncomingMessage } from 'node:http';
import { SseDecoder } from '../client/sse-decoder.js';
import { isEventStream, isSuccess, toReply } from './http-answer.js';
import { type HttpTarget, readEvents } from './http-request.js';
import { readMessages } from './json-rpc.js';
import { type ForwardedHeaders, type MessageSink, type Reply, UpstreamError } from './upstream.js';

export class StatelessCall {
  readonly #target: HttpTarget;
  readonly #messageBytesMax: number;
  readonly #underWay = new Set<ClientRequest>();
  #response: IncomingMessage | null = null;
  #aborted = false;

  constructor(options: { target: HttpTarget; messageBytesMax: number }) {
    this.#target = options.target;
    this.#messageBytesMax = options.messageBytesMax;
  }

  get isAborted(): boolean {
    return this.#aborted;
  }

  /** @returns the answer if it is one piece; null: its messages are to be read. @throws {UpstreamError} */
  async send(body: Uint8Array, headers: ForwardedHeaders): Promise<Reply | null> {
    const media = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };
    const response = await this.#target.request('POST', { ...headers, ...media }, body, this.#underWay);
    if (!isSuccess(response) || !isEventStream(response)) return toReply(response, this.#messageBytesMax);
    this.#response = response;
    return null;
  }

  /** Gives the messages to the sink, in their order, and an error if they end too soon. */
  async read(sink: MessageSink): Promise<void> {
    try {
      const events = readEvents(this.#response as IncomingMessage, new SseDecoder(), this.#messageBytesMax);
      for await (const { data } of events) {
        if (data === null || data === '') continue;
        const messages = readMessages(data);
        if (messages === null) throw new UpstreamError('rubbish');
        for (const message of messages) await sink.push(message);
      }
      if (!sink.isClosed) throw new UpstreamError('broken');
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      sink.fail(error.toRpcError());
    }
  }

  /** Nobody waits for it any more. */
  abort(): void {
    this.#aborted = true;
    for (const request of this.#underWay) request.destroy();
  }
}

/**
 * A request of the revision 2026-07-28, which has no sessions and whose streams cannot be resumed: it is passed on as it
 * is, and so is what the server makes of it. When the client hangs up, so does the front: that is how a call is cancelled.
 */

import { SseDecoder } from '../../client/sse-decoder.js';
import { isEventStream, isSuccess, toReply } from '../upstream/http-answer.js';
import { type HttpTarget, readEvents, type UnderWay } from '../upstream/http-request.js';
import type { HttpResponse } from '../upstream/http-response.js';
import { pushAll } from '../upstream/push-all.js';
import {
  type ForwardedHeaders,
  LINGER_MS,
  type MessageSink,
  type Reply,
  UpstreamError,
} from '../upstream/upstream.js';

export class StatelessCall {
  readonly #target: HttpTarget;
  readonly #messageBytesMax: number;
  readonly #underWay = new Set<UnderWay>();
  #response: HttpResponse | null = null;
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
    let lingering: NodeJS.Timeout | undefined;
    try {
      await readEvents(this.#response as HttpResponse, this.#messageBytesMax, {
        decoder: new SseDecoder(),
        take: ({ data }) => {
          if (data === null || data === '') return undefined;
          const room = pushAll(data, sink, null);
          if (sink.isClosed) lingering ??= setTimeout(() => this.abort(), LINGER_MS);
          return room;
        },
      });
      if (!sink.isClosed) throw new UpstreamError('broken');
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      sink.fail(error.toRpcError());
    } finally {
      clearTimeout(lingering);
    }
  }

  /** Nobody waits for it any more. */
  abort(): void {
    this.#aborted = true;
    for (const request of this.#underWay) request.destroy();
  }
}

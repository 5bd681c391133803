/**
 * An event store for one session of the SDK, kept in one stream of a broker. What the SDK writes to its clients is
 * appended there first, so the log has the order, and a resume reads it there: the stream's own messages, each once.
 *
 * The SDK writes a message when `storeEvent` resolves. So it resolves in the order of the log (I6), and not while a
 * replay of the same stream is under way: a message between the replay's end and the moment when the SDK knows the new
 * connection would be written to nobody, and the next one would carry the client past it (I1).
 *
 * `getStreamIdForEventId`, which is optional, is left out on purpose: with it the SDK refuses a resume while it takes the
 * broken connection for a good one. Without it the newest reader takes over.
 */

import { type ConnectionOptions, GaplessClient, GaplessError } from '../client/client.js';
import { type EventId, eventType, isOfStream, parseEventId, requestOfType } from './event-id.js';
import { endOfCall, type Gap, gapOf, LOST_CALL, missedChanges, positionMark } from './gap-messages.js';
import {
  answeredBy,
  type JsonRpcId,
  type JsonRpcMessage,
  type SdkTransport,
  STANDALONE_STREAM,
} from './sdk-shapes.js';
import { SessionLog } from './session-log.js';

/** Where an option says a value, that is what holds without it. */
export interface GaplessEventStoreOptions {
  /** The broker, or how it is reached. */
  readonly broker: GaplessClient | ConnectionOptions;
  /** The session's id. It has to be hard to guess, as the SDK wants it. */
  readonly session: string;
  /** What comes before it in the name of the session's stream; `mcp:`. */
  readonly prefix?: string | undefined;
  /** What is kept of a session: the newest so many messages, 10 000, and so many bytes of them, 16 MiB. */
  readonly eventsMax?: number | undefined;
  readonly bytesMax?: number | undefined;
  /** A session to which nothing is written for so long is forgotten, milliseconds; an hour. 0: never. */
  readonly ttlMs?: number | undefined;
  /** A replay that takes longer fails, and the client tries again, milliseconds; 10 s. New messages of its stream wait meanwhile. */
  readonly replayTimeoutMs?: number | undefined;
}

const PREFIX = 'mcp:';
const EVENTS_MAX = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;
const TTL_MS = 3_600_000;
const REPLAY_TIMEOUT_MS = 10_000;
/** Calls of a session that are open, as far as they are remembered; of more, the oldest is taken for lost. */
const OPEN_CALLS_MAX = 10_000;

type Send = (eventId: string, message: JsonRpcMessage) => Promise<void>;

export class GaplessEventStore {
  readonly #log: SessionLog;
  /** Streams whose calls this process serves, with the request that each answers as soon as it is known. */
  readonly #openCalls = new Map<string, JsonRpcId | undefined>();
  /** Streams whose replay is under way, with its end. */
  readonly #replays = new Map<string, Promise<void>>();
  /** The request that the message is about which the transport sends at this moment. */
  #sendingFor: JsonRpcId | undefined;

  constructor({ broker, session, prefix = PREFIX, ...limits }: GaplessEventStoreOptions) {
    const client = broker instanceof GaplessClient ? broker : new GaplessClient(broker);
    this.#log = new SessionLog(client, `${prefix}${session}`, {
      eventsMax: limits.eventsMax ?? EVENTS_MAX,
      bytesMax: limits.bytesMax ?? BYTES_MAX,
      ttlMs: limits.ttlMs ?? TTL_MS,
      replayTimeoutMs: limits.replayTimeoutMs ?? REPLAY_TIMEOUT_MS,
    });
  }

  /**
   * Lets the store see which request each message is about, which the SDK does not tell it. To be called with the
   * transport that has the store, before a server is connected to it. Without it a call whose messages are gone is ended
   * only where its response was stored.
   */
  watch(transport: SdkTransport): void {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      // The SDK comes to `storeEvent` within this call, before it waits for anything.
      this.#sendingFor = options?.relatedRequestId;
      try {
        return send(message, options);
      } finally {
        this.#sendingFor = undefined;
      }
    };
  }

  /** Appends a message; resolves with its id when the broker has it. @throws {GaplessError} */
  async storeEvent(streamId: string, message: object): Promise<string> {
    const type = eventType(streamId, this.#noteRequest(streamId, message as JsonRpcMessage));
    try {
      const cursor = await this.#log.append(message, type);
      await this.#noReplayOf(streamId);
      return `${type}.${cursor}`;
    } finally {
      if (answeredBy(message as JsonRpcMessage) !== undefined) this.#openCalls.delete(streamId);
    }
  }

  /**
   * Sends what came after an event on the same stream. Where that cannot be had the call is ended with an error under its
   * own id. The stream that belongs to no call goes on, after a warning and the word that everything may have changed.
   *
   * @throws {TypeError} for what is no id of an event.
   * @throws {GaplessError} when the broker cannot be read, or when it is not known whose call it is.
   */
  async replayEventsAfter<Message extends object>(
    lastEventId: string,
    { send }: { send: (eventId: string, message: Message) => Promise<void> },
  ): Promise<string> {
    const id = parseEventId(lastEventId);
    if (id === null) throw new TypeError('not an id of an event');
    await this.#noReplayOf(id.streamId);
    const { promise, end } = openEnd();
    this.#replays.set(id.streamId, promise);
    try {
      return await this.#replay(id, (eventId, message) => send(eventId, message as unknown as Message));
    } finally {
      // The SDK notes the connection in the turn of the loop in which this returns.
      setTimeout(() => {
        this.#replays.delete(id.streamId);
        end();
      }, 0);
    }
  }

  /** Removes what is kept of the session: for `onsessionclosed`. @throws {GaplessError} */
  async delete(): Promise<void> {
    await this.#log.delete();
  }

  async #noReplayOf(streamId: string): Promise<void> {
    for (;;) {
      const replay = this.#replays.get(streamId);
      if (replay === undefined) return;
      await replay;
    }
  }

  #noteRequest(streamId: string, message: JsonRpcMessage): JsonRpcId | undefined {
    if (streamId === STANDALONE_STREAM) return undefined;
    const answered = answeredBy(message);
    const requestId = answered ?? this.#sendingFor ?? this.#openCalls.get(streamId);
    this.#openCalls.set(streamId, requestId);
    const [oldest] = this.#openCalls.keys();
    if (this.#openCalls.size > OPEN_CALLS_MAX && oldest !== undefined) this.#openCalls.delete(oldest);
    return requestId;
  }

  async #replay(id: EventId, send: Send): Promise<string> {
    const { streamId } = id;
    // Before the head is: a response that is not among what is replayed is still to come.
    const isOpen = this.#openCalls.has(streamId);
    const head = await this.#log.head();
    let sent = 0;
    let isAnswered = false;
    let requestId = id.requestId ?? this.#openCalls.get(streamId);
    try {
      for await (const { type, data, id: cursor } of this.#log.between(id.cursor, head)) {
        if (!isOfStream(type, streamId)) continue;
        requestId ??= requestOfType(type);
        const message = JSON.parse(data) as JsonRpcMessage;
        await send(`${type}.${cursor}`, message);
        sent++;
        isAnswered ||= answeredBy(message) !== undefined;
      }
    } catch (error) {
      const gap = gapOf(error);
      if (gap === null) throw error;
      if (streamId !== STANDALONE_STREAM) return endCall(streamId, requestId, gap, send);
      for (const message of missedChanges(gap))
        await send(`${eventType(streamId, undefined)}.${head}`, message);
      return streamId;
    }
    const isServed = streamId === STANDALONE_STREAM || isAnswered || isOpen;
    if (!isServed) return endCall(streamId, requestId, LOST_CALL, send);
    if (sent === 0) await send(`${eventType(streamId, requestId)}.${head}`, positionMark());
    return streamId;
  }
}

/**
 * The name of the stream that is returned is nobody's, so that nothing follows the error. Its id is that of no event: a
 * client that comes back with it is refused.
 */
async function endCall(
  streamId: string,
  requestId: JsonRpcId | undefined,
  gap: Gap,
  send: Send,
): Promise<string> {
  if (requestId === undefined) throw new GaplessError('call_unknown', gap.message);
  await send(`${eventType(streamId, requestId)}.end`, endOfCall(requestId, gap));
  return `${streamId}.end`;
}

function openEnd(): { promise: Promise<void>; end: () => void } {
  let end: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { promise, end };
}

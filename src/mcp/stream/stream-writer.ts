/**
 * The way of messages into one Gapless stream, in their order. What there is no room for now, because the memory is full or
 * the log cannot commit, waits for some time and no longer: a call is better told than left to hang.
 *
 * Per message: one append, and no promise while there is room.
 */

import type { StreamRef } from '../../broker/edge-stream.js';
import type { Backlog } from './backlog.js';
import type { EarlyMessages } from './early-messages.js';
import type { McpStreams } from './mcp-streams.js';

/** How soon an append is tried again for which there was no room. */
const AGAIN_MS = 10;

/** A message on its way into the stream. */
export interface Taken {
  readonly text: string;
  /** The call that it answers, as JSON; null: none. */
  readonly call: string | null;
  /** Of the event; null: it is a message of MCP. */
  readonly type: string | null;
}

export interface StreamWriterOptions {
  readonly streams: McpStreams;
  readonly stream: StreamRef;
  readonly backlog: Backlog;
  readonly early: EarlyMessages;
  /** This message is larger than the stream can hold, and is not in it. */
  readonly refused: (taken: Taken) => void;
  /** What waited is given up, and the writer is closed: the stream is not whole. */
  readonly gaveUp: () => void;
}

export class StreamWriter {
  readonly #options: StreamWriterOptions;
  /** Taken and not appended yet, oldest first. Bounded by the backlog. */
  readonly #waiting: Taken[] = [];
  #room: Promise<void> | null = null;
  #isClosed = false;
  #hasEnded = false;
  #hasGivenUp = false;

  constructor(options: StreamWriterOptions) {
    this.#options = options;
  }

  /** Whether all that was taken is in the stream, and nothing more comes. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @returns a promise where there is no room now: resolves when the next may come, or nothing is waited for any more. */
  append(taken: Taken): Promise<void> | void {
    if (this.#isClosed) return;
    if (this.#room === null && this.#tryAppend(taken)) return;
    if (!this.#options.backlog.enter(taken.text.length)) return this.#giveUp();
    this.#waiting.push(taken);
    this.#room ??= this.#appendLater();
    return this.#room;
  }

  /** Ends the stream once all that was taken is in it. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#room === null) return this.#end();
    void this.#room.then(() => this.#end());
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#hasEnded = true;
    this.#options.streams.close(this.#options.stream);
  }

  async #appendLater(): Promise<void> {
    const { backlog } = this.#options;
    for (let attempts = 0; this.#waiting.length > 0; attempts++) {
      if (attempts * AGAIN_MS >= backlog.waitMs) return this.#giveUp();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      while (this.#waiting.length > 0 && this.#tryAppend(this.#waiting[0] as Taken)) {
        attempts = 0;
        backlog.leave((this.#waiting.shift() as Taken).text.length);
      }
    }
    this.#room = null;
  }

  /** False: try again later. Into a stream that is gone nothing comes: who asks for it is told so. */
  #tryAppend(taken: Taken): boolean {
    const { streams, stream, early, refused } = this.#options;
    const appended = streams.append(stream, taken.text, taken.type, this.#giveUp);
    if (appended === 'appended' && taken.type === null) early.add(taken.text);
    else if (appended !== 'later') early.spoil();
    if (appended === 'too_large') refused(taken);
    return appended !== 'later';
  }

  /** The stream may have been ended since: what was taken before is lost all the same. */
  readonly #giveUp = (): void => {
    if (this.#hasGivenUp) return;
    this.#hasGivenUp = true;
    this.#isClosed = true;
    for (const { text } of this.#waiting.splice(0)) this.#options.backlog.leave(text.length);
    this.#options.gaveUp();
  };
}

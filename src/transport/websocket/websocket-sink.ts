/**
 * A subscriber's WebSocket as a sink (contract 5): a run of events is a message, and a sign of life is a ping with the
 * cursor, which the peer's own WebSocket answers. As with a response, what the kernel does not take the library
 * buffers without bound, so after a write that was not taken nothing is written until the buffer is empty (I7).
 */

import type { WebSocket } from 'uWebSockets.js';
import type { EdgeBroker } from '../../broker/edge-broker.js';
import type { Ending } from '../../broker/ending.js';
import type { Beats, Sink, Subscription } from '../../broker/subscription.js';
import { encodeMessage, type LiveMessage, type MessageFormat } from '../../wire/live-message.js';

/** What close codes mean (RFC 6455, 7.4). From 4000 on they are the application's: 4000 and the HTTP status. */
const CLOSE_NORMAL = 1000;
const CLOSE_RESTART = 1012;
const CLOSE_STATUS = 4000;

/** The library's answer to a send: all of it has left the process. */
const SENT = 1;

export class WebSocketSink implements Sink {
  /** Pongs say what has arrived and that the peer is there, so they are wanted under load too. */
  beats: Beats = 'always';
  readonly format: MessageFormat;
  readonly #ws: WebSocket<unknown>;
  readonly #broker: EdgeBroker;
  #subscription: Subscription | null = null;
  #open = true;

  constructor(ws: WebSocket<unknown>, format: MessageFormat, broker: EdgeBroker) {
    this.#ws = ws;
    this.format = format;
    this.#broker = broker;
  }

  /** False once the connection has ended, whoever ended it. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Null before it begins. */
  get subscription(): Subscription | null {
    return this.#subscription;
  }

  attach(subscription: Subscription): void {
    this.#subscription = subscription;
  }

  write(message: Uint8Array | string): boolean {
    if (!this.#open) return false;
    return this.#ws.send(message, this.format === 'msgpack') === SENT;
  }

  say(message: LiveMessage): boolean {
    return this.write(encodeMessage(this.format, message));
  }

  /**
   * Says something to a peer that has asked for it, whatever else waits; the caller sees to it that it is not too much.
   * @returns its bytes.
   */
  answer(message: LiveMessage): number {
    const encoded = encodeMessage(this.format, message);
    this.write(encoded);
    return Buffer.byteLength(encoded);
  }

  beat(cursor: string, isNews: boolean): boolean {
    if (!this.#open) return false;
    if (isNews && !this.say({ kind: 'position', cursor })) return false;
    return this.#ws.ping(cursor) === SENT;
  }

  end(ending: Ending): void {
    switch (ending.kind) {
      case 'closed':
      case 'deleted':
        this.say({ kind: ending.kind, cursor: ending.cursor });
        return this.#close(CLOSE_NORMAL, `stream_${ending.kind}`);
      case 'unavailable':
      case 'expired':
        return this.refuse(ending.refusal);
      case 'drained':
        this.say({ kind: 'draining', retryMs: ending.retryMs });
        return this.#close(CLOSE_RESTART, 'draining');
    }
  }

  /** Ends the connection with the problem as its last message. */
  refuse(error: { status: number; code: string; problem(): Record<string, unknown> }): void {
    this.say({ kind: 'error', ...error.problem() });
    this.#close(CLOSE_STATUS + error.status, error.code);
  }

  cut(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#ws.close();
  }

  /** The library's buffer has shrunk. */
  drained(): void {
    if (this.#subscription !== null && this.#ws.getBufferedAmount() === 0) {
      this.#broker.drained(this.#subscription);
    }
  }

  /** The connection is no more. */
  closed(): void {
    this.#open = false;
    if (this.#subscription !== null) this.#broker.unsubscribe(this.#subscription);
  }

  #close(code: number, reason: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#ws.end(code, reason);
  }
}

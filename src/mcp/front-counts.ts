/**
 * How the front is doing: written by its thread, read by whoever renders metrics.
 *
 *   offset size type field    access
 *        0  8*n f64[] counts  plain, single writer: the thread of the front; by FrontCount
 */

import type { UpstreamReason } from './upstream/upstream.js';

/** Index of each count. Gauges are marked. */
export const FrontCount = {
  /** Gauge. */
  sessions: 0,
  sessionsBegun: 1,
  /** Gauge: calls that wait for their answer. */
  callsUnderWay: 2,
  calls: 3,
  messages: 4,
  takeovers: 5,
  /** Sessions that a server had forgotten and took up anew. */
  renewals: 6,
  refusedSessions: 7,
  refusedCalls: 8,
  failedUnreachable: 9,
  failedBroken: 10,
  failedSilent: 11,
  failedRefused: 12,
  failedRubbish: 13,
  failedTooLarge: 14,
  failedSessionLost: 15,
  failedSessionEnded: 16,
  failedNoRoom: 17,
  /** Gauge: of messages that wait until they can be appended. */
  waitingCharacters: 18,
  /** Clients of HTTP+SSE that came back and could not be given all. */
  missed: 19,
  /** Sessions taken up that another process had left. */
  restored: 20,
  /** Clients that came back to messages that are gone, or were overtaken. */
  refusedResumes: 21,
} as const;

/** Why a call was answered by the front. */
export const FAILED_COUNT: Readonly<Record<UpstreamReason | 'session_ended' | 'no_room', number>> = {
  unreachable: FrontCount.failedUnreachable,
  broken: FrontCount.failedBroken,
  silent: FrontCount.failedSilent,
  refused: FrontCount.failedRefused,
  rubbish: FrontCount.failedRubbish,
  message_too_large: FrontCount.failedTooLarge,
  session_lost: FrontCount.failedSessionLost,
  session_ended: FrontCount.failedSessionEnded,
  no_room: FrontCount.failedNoRoom,
};

const LENGTH = 32;

export function createFrontCounts(): SharedArrayBuffer {
  return new SharedArrayBuffer(8 * LENGTH);
}

export class FrontCounts {
  readonly #counts: Float64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#counts = new Float64Array(buffer);
  }

  add(count: number, amount: number): void {
    this.#counts[count] = this.get(count) + amount;
  }

  set(count: number, value: number): void {
    this.#counts[count] = value;
  }

  get(count: number): number {
    return this.#counts[count] as number;
  }
}

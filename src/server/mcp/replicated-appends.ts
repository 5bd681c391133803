/**
 * Appends of the front to a log that brokers share: the coordinator has them placed, one publish of a stream after the
 * other, each with all that came meanwhile. A stream has one broker that appends to it. Each publish says after which
 * event it stands, so one that another broker has taken over takes nothing more from here; and which publish it is, so
 * that one whose answer was lost is sent again and appended once (contract 3.4, 3.5).
 */

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamRef } from '../../broker/edge-stream.js';
import type { Placed, Publish } from '../../broker/replicated-publish.js';
import { type EventParts, storedBytes } from '../../core/event-parts.js';
import { DIGEST_BYTES, PRODUCER } from '../../core/producer-record.js';
import { type ErrorCode, RequestError } from '../../errors.js';
import type { Appended } from '../../mcp/stream/mcp-streams.js';
import type { EdgeLink } from '../edge/edge-link.js';

export interface ReplicatedAppendsOptions {
  readonly link: Pick<EdgeLink, 'ask'>;
  /** What this broker is called in what it writes. */
  readonly broker: string;
  /** Of one event, as the log takes it. */
  readonly eventBytesMax: number;
  /** How long a publish may wait for its place, milliseconds. */
  readonly waitMs: number;
}

/** What waits for its place, bytes: of one stream, and of all. One event may wait whatever its size. */
const LINE_BYTES_MAX = 1024 * 1024;
const BYTES_MAX = 64 * 1024 * 1024;
/** In one publish, unless one event is larger: about as much as goes into one message of the log. */
const PUBLISH_BYTES_MAX = 128 * 1024;
/** How soon is tried again what the log could not do. */
const AGAIN_MS = 100;
/** Somebody else has appended, or nobody can any more. */
const LOST: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'head_mismatch',
  'stream_closed',
  'stream_not_found',
]);
/** The servers of the log take less than they did. */
const TOO_LARGE: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['event_too_large', 'batch_too_large']);

/** What waits for its place in one stream. */
interface Line {
  readonly stream: StreamRef;
  /** Names what is sent from here: another name each time that the stream is taken over. */
  readonly digest: string;
  readonly waiting: EventParts[];
  waitingBytes: number;
  /** Seq of the newest event that has its place. */
  head: number;
  publishes: number;
  isRunning: boolean;
  isClosing: boolean;
  isLost: boolean;
  /** Told when what waits is given up. */
  gaveUp: () => void;
}

export class ReplicatedAppends {
  readonly #options: ReplicatedAppendsOptions;
  /** By epoch, until the stream is closed or removed. */
  readonly #lines = new Map<string, Line>();
  readonly #running = new Set<Promise<void>>();
  #waitingBytes = 0;

  constructor(options: ReplicatedAppendsOptions) {
    this.#options = options;
  }

  /** This broker appends to the stream from now on. @param head the newest event there is. */
  begin(stream: StreamRef, head: number): void {
    this.#lines.set(stream.epoch, this.#newLine(stream, head));
  }

  /** Whether this broker appends to it: no other has taken it over, and it has yet to be ended. */
  isHere({ epoch }: StreamRef): boolean {
    return this.#lines.get(epoch)?.isLost === false;
  }

  /** @param gaveUp called when this, or what was taken before it, waits too long, or cannot be placed at all. */
  append(stream: StreamRef, parts: EventParts, gaveUp: () => void): Appended {
    const line = this.#lineOf(stream);
    const size = storedBytes(parts);
    if (size > this.#options.eventBytesMax) return 'too_large';
    if (line.isLost || line.isClosing) return 'gone';
    const isFull =
      (line.waitingBytes > 0 && line.waitingBytes + size > LINE_BYTES_MAX) ||
      (this.#waitingBytes > 0 && this.#waitingBytes + size > BYTES_MAX);
    if (isFull) return 'later';
    line.gaveUp = gaveUp;
    line.waiting.push(parts);
    this.#countWaiting(line, size);
    this.#run(line);
    return 'appended';
  }

  /** Ends a stream once all is appended that was taken. */
  close(stream: StreamRef): void {
    const line = this.#lineOf(stream);
    line.isClosing = true;
    this.#run(line);
  }

  /** Takes nothing more for a stream that goes. */
  forget({ epoch }: StreamRef): void {
    const line = this.#lines.get(epoch);
    if (line !== undefined) this.#lose(line);
    this.#lines.delete(epoch);
  }

  /** Resolves when all is appended that was taken up to now. */
  async drained(): Promise<void> {
    await Promise.all(this.#running);
  }

  #lineOf(stream: StreamRef): Line {
    let line = this.#lines.get(stream.epoch);
    if (line === undefined) {
      line = this.#newLine(stream, 0);
      this.#lines.set(stream.epoch, line);
    }
    return line;
  }

  #newLine(stream: StreamRef, head: number): Line {
    const hash = createHash('sha256').update(`${this.#options.broker} ${head}`).digest();
    const digest = hash.subarray(0, DIGEST_BYTES).toString('hex');
    const state = { isRunning: false, isClosing: false, isLost: false, gaveUp: () => undefined };
    return { stream, digest, waiting: [], waitingBytes: 0, head, publishes: 0, ...state };
  }

  #run(line: Line): void {
    if (line.isRunning) return;
    line.isRunning = true;
    const running = this.#drain(line).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #drain(line: Line): Promise<void> {
    while (!line.isLost && line.waiting.length > 0) {
      const parts = this.#take(line);
      const late = setTimeout(() => this.#giveUp(line), this.#options.waitMs);
      const placed = await this.#untilDone(line, () => this.#publish(line, parts));
      clearTimeout(late);
      if (placed === null) break;
      line.head = placed.last;
      line.publishes++;
    }
    const { name, epoch } = line.stream;
    if (line.isClosing && !line.isLost) {
      await this.#untilDone(line, () => this.#options.link.ask('close', { name }));
    }
    if (line.isClosing) this.#lines.delete(epoch);
    line.isRunning = false;
  }

  #publish({ stream, digest, head, publishes }: Line, parts: EventParts): Promise<Placed> {
    const { name, epoch } = stream;
    const publish: Publish = {
      parts,
      claim: { kind: PRODUCER, digest, epoch: 0, seq: publishes },
      creates: false,
      ifHead: { epoch, seq: head },
    };
    return this.#options.link.ask('publish', { name, publish });
  }

  /** Null: the stream is lost. */
  async #untilDone<R>(line: Line, attempt: () => Promise<R>): Promise<R | null> {
    while (!line.isLost) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        if (LOST.has(error.code)) this.#lose(line);
        else if (TOO_LARGE.has(error.code)) this.#giveUp(line);
        else await sleep(AGAIN_MS);
      }
    }
    return null;
  }

  /** As much as goes into one publish. */
  #take(line: Line): EventParts {
    const first = line.waiting.shift() as EventParts;
    const taken = [first];
    let bytes = storedBytes(first);
    for (let next = line.waiting[0]; next !== undefined; next = line.waiting[0]) {
      if (bytes + storedBytes(next) > Math.min(PUBLISH_BYTES_MAX, this.#options.eventBytesMax)) break;
      bytes += storedBytes(next);
      taken.push(next);
      line.waiting.shift();
    }
    this.#countWaiting(line, -bytes);
    return taken.length === 1 ? first : joined(taken);
  }

  /** Nobody knows what becomes of what is under way, so the stream may have a hole at its end. */
  #giveUp(line: Line): void {
    if (line.isLost) return;
    this.#lose(line);
    line.gaveUp();
  }

  #lose(line: Line): void {
    line.isLost = true;
    line.waiting.length = 0;
    this.#countWaiting(line, -line.waitingBytes);
  }

  #countWaiting(line: Line, bytes: number): void {
    line.waitingBytes += bytes;
    this.#waitingBytes += bytes;
  }
}

function joined(parts: readonly EventParts[]): EventParts {
  const ends: number[] = [];
  let offset = 0;
  for (const part of parts) {
    for (const end of part.ends) ends.push(offset + end);
    offset += part.bytes.length;
  }
  return { bytes: Buffer.concat(parts.map(({ bytes }) => bytes)), ends: Uint32Array.from(ends) };
}

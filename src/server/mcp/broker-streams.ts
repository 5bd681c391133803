/**
 * The streams of the MCP front: appended to from its thread, as an edge does it; made, closed and removed by the
 * coordinator.
 */

import { randomBytes } from 'node:crypto';
import type { StreamRef } from '../../broker/edge-stream.js';
import type { Config } from '../../config/schema.js';
import { FrameBatch } from '../../core/sse-frame.js';
import { type ParsedEvent, parseFrames } from '../../core/sse-parse.js';
import { OWN_STREAMS_PREFIX } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import { FrontCount, type FrontCounts } from '../../mcp/front-counts.js';
import type { Appended, McpStreams, Positions } from '../../mcp/stream/mcp-streams.js';
import { isNote } from '../../mcp/stream/stream-notes.js';
import * as append from '../../ring/append.js';
import { closeStream, isCurrent, readPositions, touchStream } from '../../ring/lifecycle.js';
import { LOG_HEALTHY, LogStatus } from '../../ring/log-status.js';
import { Rings } from '../../ring/rings.js';
import { Wakes } from '../../ring/wake-queue.js';
import { frameBytesMax } from '../bounds.js';
import type { EdgeLink } from '../edge/edge-link.js';
import { copyParts } from './frame-parts.js';
import type { McpSetup } from './mcp-thread.js';
import { ReplicatedStreams } from './replicated-streams.js';
import { SpareStreams } from './spare-streams.js';

const RUN_BYTES = 9;
/** Read at a time; one larger event as well. */
const READ_BYTES_MAX = 128 * 1024;
/** Streams that go together: each time that the coordinator is asked wakes it, and this thread for its answer. */
const REMOVALS = 32;
/** No edge: nobody reads here. */
const NO_EDGE = -1;

export interface BrokerStreamsParts {
  readonly setup: McpSetup;
  readonly link: EdgeLink;
  readonly now: () => number;
  readonly counts: FrontCounts;
}

export class BrokerStreams implements McpStreams {
  readonly #config: Config;
  readonly #link: EdgeLink;
  readonly #now: () => number;
  readonly #rings: Rings;
  readonly #wakes: Wakes;
  readonly #appender: append.Appender;
  readonly #batch: FrameBatch;
  readonly #counts: FrontCounts;
  readonly #logStatus: LogStatus | null;
  readonly #spares: SpareStreams;
  /** Names of this run of the broker differ from those of any other. */
  readonly #run = randomBytes(RUN_BYTES).toString('base64url');
  /** Null: this broker is the only one, and appends by itself. */
  readonly shared: ReplicatedStreams | null;
  #lastName = 0;
  /** Names of those that go soon. */
  readonly #removed = new Set<string>();
  #untold: [slot: number, bits: number][] = [];

  constructor({ setup, link, now, counts }: BrokerStreamsParts) {
    this.#counts = counts;
    this.#spares = new SpareStreams({
      make: (count) => this.#make(count),
      touch: (stream) => this.touch(stream),
    });
    this.#config = setup.config;
    this.#link = link;
    this.#now = now;
    this.#rings = new Rings(setup.rings);
    this.#wakes = new Wakes(setup.wakes, this.#rings);
    this.#appender = new append.Appender(this.#rings);
    this.#batch = new FrameBatch(frameBytesMax(setup.config));
    this.#logStatus = setup.logStatus === null ? null : new LogStatus(setup.logStatus);
    const { eventBytesMax, config } = setup;
    this.shared =
      eventBytesMax === null
        ? null
        : new ReplicatedStreams({
            ...{ link, now, eventBytesMax, broker: this.#run },
            ...{ waitMs: config.mcpWaitMs, ttlMs: config.mcpTtlMs },
            head: (stream) => this.positions(stream)?.head ?? null,
          });
  }

  get commitsAtOnce(): boolean {
    return !this.#rings.durable;
  }

  create(): Promise<StreamRef> {
    return this.#spares.take();
  }

  /** Keeps the spare streams alive, and lets go those that were removed. Call it every few hundred milliseconds. */
  keep(): void {
    this.#spares.keep();
    this.shared?.keep();
    this.removeAll();
  }

  async find(name: string): Promise<StreamRef | null> {
    if (this.#removed.has(name)) return null;
    // What other brokers have written is known here afterwards.
    if (this.shared !== null) await this.#link.ask('refresh', { name, sought: null });
    return this.#link.ask('resolve', { name, create: false });
  }

  async read({ slot, generation, epoch }: StreamRef, afterSeq: number): Promise<readonly ParsedEvent[]> {
    const stream = { slot, generation, epoch };
    const run = await this.#link.ask('replay', { stream, afterSeq, bytesMax: READ_BYTES_MAX });
    return run === null || run.firstSeq !== afterSeq + 1 ? [] : parseFrames(run.frames);
  }

  /** Appends what is no message of MCP, and is not counted as one. `seq`: its own, if it was appended. */
  appendRecord(stream: StreamRef, text: string): { readonly appended: Appended; readonly seq: number } {
    return { appended: this.#append(stream, text, null, () => undefined), seq: this.#appender.lastSeq };
  }

  hasCommitted(stream: StreamRef, seq: number): boolean {
    return (this.positions(stream)?.committed ?? 0) >= seq;
  }

  append(stream: StreamRef, message: string, type: string | null, gaveUp: () => void): Appended {
    const appended = this.#append(stream, message, type, gaveUp);
    if (appended === 'appended' && !isNote(type)) this.#counts.add(FrontCount.messages, 1);
    return appended;
  }

  positions(stream: StreamRef): Positions | null {
    return readPositions(this.#rings, stream);
  }

  close(stream: StreamRef): void {
    if (this.shared !== null) return this.shared.appends.close(stream);
    // With a log the end has to be written down, and is told when it is.
    if (this.#rings.durable) return this.#tell(this.#link.ask('close', { name: stream.name }));
    closeStream(this.#rings, stream, this.#now());
    this.#wakes.announce(stream.slot, NO_EDGE);
  }

  remove(stream: StreamRef): void {
    const { name } = stream;
    this.shared?.appends.forget(stream);
    if (this.#removed.add(name).size === REMOVALS) this.removeAll();
  }

  /** Lets go those that were removed since the last time. */
  removeAll(): void {
    if (this.#removed.size === 0) return;
    const names = [...this.#removed];
    this.#removed.clear();
    this.#link.ask('removeAll', { names }).catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
      // Whoever reads one of them waits for its end: it is tried again until the log can say so.
      for (const name of names) this.#removed.add(name);
    });
  }

  touch(stream: StreamRef): boolean {
    touchStream(this.#rings, stream, this.#now());
    return isCurrent(this.#rings, stream);
  }

  #append(stream: StreamRef, text: string, type: string | null, gaveUp: () => void): Appended {
    if ((this.#logStatus?.fault ?? LOG_HEALTHY) !== LOG_HEALTHY) return 'later';
    if (!this.#frame(text, type)) return 'too_large';
    if (this.shared !== null) return this.shared.appends.append(stream, copyParts(this.#batch), gaveUp);
    const outcome = this.#appender.append(stream, this.#batch, this.#now(), append.ANY_HEAD);
    switch (outcome) {
      case append.APPENDED:
        this.#tellReaders(stream.slot, this.#appender.toTell);
        return 'appended';
      case append.APPEND_UNCOMMITTED:
      case append.APPEND_NO_MEMORY:
        return 'later';
      case append.APPEND_TOO_LARGE:
        return 'too_large';
      default:
        return 'gone';
    }
  }

  #frame(message: string, type: string | null): boolean {
    const bytes = Buffer.from(message);
    this.#batch.reset();
    try {
      this.#batch.pushText(bytes, 0, bytes.length, type);
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return false;
    }
  }

  /**
   * Wakes those who read the slot once this turn is over: to wake a thread costs more than all else that is done for a
   * message, and more messages, or the end, often follow at once. Their bits are set meanwhile, so nobody else does (W1).
   */
  #tellReaders(slot: number, bits: number): void {
    if (bits !== 0 && this.#untold.push([slot, bits]) === 1) setImmediate(() => this.#tellAll());
  }

  #tellAll(): void {
    const untold = this.#untold;
    this.#untold = [];
    for (const [slot, bits] of untold) this.#wakes.tell(slot, bits, NO_EDGE);
  }

  async #make(count: number): Promise<readonly StreamRef[]> {
    const names = Array.from(
      { length: count },
      () => `${OWN_STREAMS_PREFIX}${this.#run}-${++this.#lastName}`,
    );
    return this.#link.ask('putAll', { names, config: { ttlMs: this.#config.mcpTtlMs } });
  }

  /** A log that cannot write it down now does so when it can; nobody waits for that. */
  #tell(asked: Promise<unknown>): void {
    asked.catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
    });
  }
}

/**
 * The streams of the MCP front: appended to from its thread, as an edge does it; made, closed and removed by the
 * coordinator.
 */

import type { StreamRef } from '../broker/edge-stream.js';
import type { Config } from '../config/schema.js';
import { FrameBatch } from '../core/sse-frame.js';
import { RequestError } from '../errors.js';
import { FrontCount, type FrontCounts } from '../mcp/front-counts.js';
import type { Appended, McpStreams } from '../mcp/mcp-streams.js';
import * as append from '../ring/append.js';
import { isCurrent, touchStream } from '../ring/lifecycle.js';
import { LOG_HEALTHY, LogStatus } from '../ring/log-status.js';
import { Rings } from '../ring/rings.js';
import { Wakes } from '../ring/wake-queue.js';
import { frameBytesMax } from './bounds.js';
import type { EdgeLink } from './edge-link.js';
import type { McpSetup } from './mcp-thread.js';

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

  constructor({ setup, link, now, counts }: BrokerStreamsParts) {
    this.#counts = counts;
    this.#config = setup.config;
    this.#link = link;
    this.#now = now;
    this.#rings = new Rings(setup.rings);
    this.#wakes = new Wakes(setup.wakes, this.#rings);
    this.#appender = new append.Appender(this.#rings);
    this.#batch = new FrameBatch(frameBytesMax(setup.config));
    this.#logStatus = setup.logStatus === null ? null : new LogStatus(setup.logStatus);
  }

  async create(name: string): Promise<StreamRef> {
    const { ref } = await this.#link.ask('put', { name, config: { ttlMs: this.#config.mcpTtlMs } });
    return ref;
  }

  append(stream: StreamRef, message: string): Appended {
    if ((this.#logStatus?.fault ?? LOG_HEALTHY) !== LOG_HEALTHY) return 'later';
    if (!this.#frame(message)) return 'too_large';
    const outcome = this.#appender.append(stream, this.#batch, this.#now(), append.ANY_HEAD);
    switch (outcome) {
      case append.APPENDED:
        this.#wakes.tell(stream.slot, this.#appender.toTell, NO_EDGE);
        this.#counts.add(FrontCount.messages, 1);
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

  close({ name }: StreamRef): void {
    this.#tell('close', name);
  }

  remove({ name }: StreamRef): void {
    this.#tell('remove', name);
  }

  touch(stream: StreamRef): boolean {
    touchStream(this.#rings, stream, this.#now());
    return isCurrent(this.#rings, stream);
  }

  #frame(message: string): boolean {
    const bytes = Buffer.from(message);
    this.#batch.reset();
    try {
      this.#batch.pushText(bytes, 0, bytes.length, null);
      return true;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return false;
    }
  }

  /** A log that cannot write it down now does so when it can; nobody waits for that. */
  #tell(topic: 'close' | 'remove', name: string): void {
    this.#link.ask(topic, { name }).catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error;
    });
  }
}

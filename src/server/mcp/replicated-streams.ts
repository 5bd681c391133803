/** The front's streams in a log that brokers share: which broker appends to which, and who goes on when one is gone. */

import type { StreamRef } from '../../broker/edge-stream.js';
import { OWN_STREAMS_PREFIX } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import type { SharedStreams } from '../../mcp/stream/mcp-streams.js';
import { NOTE_TYPES } from '../../mcp/stream/stream-notes.js';
import type { EdgeLink } from '../edge/edge-link.js';
import { partsOf } from './frame-parts.js';
import { Presence } from './presence.js';
import { ReplicatedAppends } from './replicated-appends.js';

/** Streams that are named after their session, and not after the broker that made them. */
const OWN_NAME_PREFIX = `${OWN_STREAMS_PREFIX}own:`;

export interface ReplicatedStreamsOptions {
  readonly link: Pick<EdgeLink, 'ask'>;
  readonly broker: string;
  readonly eventBytesMax: number;
  /** See `ReplicatedAppends`. */
  readonly waitMs: number;
  readonly ttlMs: number;
  readonly head: (stream: StreamRef) => number | null;
  readonly now: () => number;
}

export class ReplicatedStreams implements SharedStreams {
  readonly appends: ReplicatedAppends;
  readonly #options: ReplicatedStreamsOptions;
  readonly #presence: Presence;

  constructor(options: ReplicatedStreamsOptions) {
    this.#options = options;
    this.appends = new ReplicatedAppends(options);
    this.#presence = new Presence(options);
  }

  get broker(): string {
    return this.#options.broker;
  }

  makerOf(name: string): string | null {
    if (name.startsWith(OWN_NAME_PREFIX)) return null;
    return name.slice(OWN_STREAMS_PREFIX.length, name.lastIndexOf('-'));
  }

  async open(label: string): Promise<StreamRef> {
    const { link, ttlMs } = this.#options;
    const name = OWN_NAME_PREFIX + label;
    // One that another broker has made is taken as it is.
    const known = await link.ask('resolve', { name, create: false });
    return known ?? (await link.ask('put', { name, config: { ttlMs } })).ref;
  }

  async takeOver(stream: StreamRef, head: number): Promise<boolean> {
    const { name, epoch } = stream;
    const parts = partsOf(this.broker, NOTE_TYPES.taken);
    const publish = { parts, claim: null, creates: false, ifHead: { epoch, seq: head } };
    try {
      await this.#options.link.ask('publish', { name, publish });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return false;
    }
    this.goOn(stream, head + 1);
    return true;
  }

  goOn(stream: StreamRef, head: number): void {
    this.appends.begin(stream, head);
  }

  letGo(stream: StreamRef): void {
    this.appends.forget(stream);
  }

  isHere(stream: StreamRef): boolean {
    return this.appends.isHere(stream);
  }

  isGone(broker: string): Promise<boolean> {
    return this.#presence.isGone(broker);
  }

  /** Others hear that this broker is there. Before anything else. @throws {RequestError} */
  begin(): Promise<void> {
    return this.#presence.begin();
  }

  /** Call it every few hundred milliseconds. */
  keep(): void {
    this.#presence.keep();
  }

  /** The process goes down: what it has begun is for others. */
  async leave(): Promise<void> {
    await this.appends.drained();
    return this.#presence.leave();
  }
}

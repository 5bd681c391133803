/**
 * Records of sessions, and the secret of their ids, each in a stream of its own of which the newest event counts. They are
 * in the log beside the streams of calls: one file, one commit, and one way to read after a start.
 */

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamRef } from '../../broker/edge-stream.js';
import { OWN_STREAMS_PREFIX } from '../../core/stream-name.js';
import { RequestError } from '../../errors.js';
import type { SessionRecord, SessionRecords } from '../../mcp/session/session-record.js';
import type { LeftStream } from '../../mcp/stream/mcp-streams.js';
import type { EdgeLink } from '../edge/edge-link.js';
import type { BrokerStreams } from './mcp-broker-streams.js';

const SECRET_NAME = `${OWN_STREAMS_PREFIX}secret`;
const SECRET_BYTES = 32;
const RECORD_NAME_PREFIX = `${OWN_STREAMS_PREFIX}session-`;
/** The newest is all that is asked for; it stays for as long as its session does. */
const CONFIG = { retention: { events: 1, bytes: 0, ageMs: 0 }, overflow: 'evict', ttlMs: 0 };
/** How often it is looked whether a record is committed, and how long. */
const LOOK_MS = 1;
const COMMIT_MS_MAX = 10_000;

interface Kept {
  readonly ref: StreamRef;
  /** The newest record while there was no room for it; null: it is in the stream. */
  waiting: string | null;
  /** Of the newest in the stream. */
  seq: number;
}

export class BrokerRecords implements SessionRecords {
  readonly #link: EdgeLink;
  readonly #streams: BrokerStreams;
  readonly #now: () => number;
  /** By label. */
  readonly #kept = new Map<string, Kept>();

  constructor({ link, streams, now }: { link: EdgeLink; streams: BrokerStreams; now: () => number }) {
    this.#link = link;
    this.#streams = streams;
    this.#now = now;
  }

  /** What keys the MAC of ids, as long as the directory lives. @throws {RequestError} */
  async secret(left: readonly LeftStream[]): Promise<Uint8Array> {
    const before = left.find(({ ref }) => ref.name === SECRET_NAME);
    const events = before === undefined ? [] : await this.#streams.read(before.ref, 0);
    const [written] = events;
    if (written !== undefined) return Buffer.from(Buffer.from(written.data).toString(), 'base64url');
    const secret = randomBytes(SECRET_BYTES);
    const kept = await this.#create(SECRET_NAME);
    this.#write(kept, secret.toString('base64url'));
    await this.#committed(kept);
    return secret;
  }

  /** Takes those over that another process has left. @returns the streams with records, and those of sessions. */
  adopt(left: readonly LeftStream[]): { records: LeftStream[]; others: LeftStream[] } {
    const isRecord = ({ ref }: LeftStream): boolean => ref.name.startsWith(RECORD_NAME_PREFIX);
    const records = left.filter(isRecord);
    for (const { ref, head } of records) {
      this.#kept.set(ref.name.slice(RECORD_NAME_PREFIX.length), { ref, waiting: null, seq: head });
    }
    const isOther = (stream: LeftStream): boolean => !isRecord(stream) && stream.ref.name !== SECRET_NAME;
    return { records, others: left.filter(isOther) };
  }

  async begin(label: string, record: SessionRecord): Promise<void> {
    const kept = await this.#create(nameOf(label));
    this.#kept.set(label, kept);
    this.put(label, record);
    const isWritten = kept.waiting !== null || kept.seq > 0;
    if (!isWritten) throw new RequestError('event_too_large', 'what began the session cannot be kept');
    await this.committed(label);
  }

  put(label: string, record: SessionRecord): void {
    const kept = this.#kept.get(label);
    if (kept !== undefined) this.#write(kept, JSON.stringify(record));
  }

  async committed(label: string): Promise<void> {
    const kept = this.#kept.get(label);
    if (kept !== undefined) await this.#committed(kept);
  }

  async remove(label: string): Promise<void> {
    if (!this.#kept.delete(label)) return;
    await this.#link.ask('remove', { name: nameOf(label) });
  }

  /** Writes what there was no room for. Call it every few hundred milliseconds. */
  keep(): void {
    for (const kept of this.#kept.values()) if (kept.waiting !== null) this.#write(kept, kept.waiting);
  }

  async #create(name: string): Promise<Kept> {
    const { ref } = await this.#link.ask('put', { name, config: CONFIG });
    return { ref, waiting: null, seq: 0 };
  }

  #write(kept: Kept, text: string): void {
    const { appended, seq } = this.#streams.appendRecord(kept.ref, text);
    // One that has become larger than a stream can hold leaves the one before in force.
    kept.waiting = appended === 'later' ? text : null;
    if (appended === 'appended') kept.seq = seq;
  }

  /** A commit is a matter of milliseconds, and seldom waited for: it is not worth being woken for. */
  async #committed(kept: Kept): Promise<void> {
    const endMs = this.#now() + COMMIT_MS_MAX;
    while (kept.waiting !== null || !this.#streams.hasCommitted(kept.ref, kept.seq)) {
      if (this.#now() > endMs) throw new RequestError('log_unavailable');
      await sleep(LOOK_MS);
    }
  }
}

function nameOf(label: string): string {
  return RECORD_NAME_PREFIX + label;
}

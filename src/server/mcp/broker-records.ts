/**
 * Records of sessions, and the secret of their ids, each in a stream of its own of which the newest event counts. They are
 * in the log beside the streams of calls: one file, one commit, and one way to read after a start.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamRef } from '../../broker/edge-stream.js';
import { RequestError } from '../../errors.js';
import { textOf } from '../../mcp/session/call-history.js';
import type { SessionRecord, SessionRecords } from '../../mcp/session/session-record.js';
import type { LeftStream } from '../../mcp/stream/mcp-streams.js';
import type { EdgeLink } from '../edge/edge-link.js';
import type { BrokerStreams } from './broker-streams.js';
import {
  COMMIT_MS_MAX,
  KEEPS_NEWEST,
  labelOfRecord,
  newSecret,
  readSecret,
  recordStream,
  SECRET_STREAM,
} from './record-streams.js';

/** It stays for as long as its session does. */
const CONFIG = { ...KEEPS_NEWEST, ttlMs: 0 };
/** How often it is looked whether a record is committed. */
const LOOK_MS = 1;

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
    const before = left.find(({ ref }) => ref.name === SECRET_STREAM);
    const [written] = before === undefined ? [] : await this.#streams.read(before.ref, 0);
    if (written !== undefined) return readSecret(textOf(written));
    const secret = newSecret();
    const kept = await this.#create(SECRET_STREAM);
    this.#write(kept, secret);
    await this.#committed(kept);
    return readSecret(secret);
  }

  /** Takes those over that another process has left. @returns the streams with records, and those of sessions. */
  adopt(left: readonly LeftStream[]): { records: LeftStream[]; others: LeftStream[] } {
    const records: LeftStream[] = [];
    const others: LeftStream[] = [];
    for (const stream of left) {
      const { ref, head } = stream;
      const label = labelOfRecord(ref.name);
      if (label !== null) {
        records.push(stream);
        this.#kept.set(label, { ref, waiting: null, seq: head });
      } else if (ref.name !== SECRET_STREAM) others.push(stream);
    }
    return { records, others };
  }

  async begin(label: string, record: SessionRecord): Promise<void> {
    const kept = await this.#create(recordStream(label));
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
    await this.#link.ask('remove', { name: recordStream(label) });
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

/**
 * Records of sessions, and the secret of their ids, where brokers share the log. Any of them may write: each time it says
 * which record it has read, and where another one was first it puts what it has changed on top of that.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamRef } from '../../broker/edge-stream.js';
import { RequestError } from '../../errors.js';
import { textOf } from '../../mcp/session/call-history.js';
import { mergeRecords, type SessionRecord, type SharedRecords } from '../../mcp/session/session-record.js';
import type { EdgeLink } from '../edge/edge-link.js';
import type { BrokerStreams } from './broker-streams.js';
import { partsOf } from './frame-parts.js';
import {
  COMMIT_MS_MAX,
  KEEPS_NEWEST,
  newSecret,
  readSecret,
  recordStream,
  SECRET_STREAM,
} from './record-streams.js';

const AGAIN_MS = 100;

interface Kept {
  readonly ref: StreamRef;
  /** The newest that is known, and its seq; null: the session has not begun. */
  record: SessionRecord | null;
  seq: number;
  /** What it is to become; null: nothing else. */
  wanted: SessionRecord | null;
  writing: Promise<void> | null;
}

export interface SharedRecordsOptions {
  readonly link: Pick<EdgeLink, 'ask'>;
  readonly streams: BrokerStreams;
  /** After which a session is over that nobody uses, at any broker. */
  readonly sessionTtlMs: number;
}

export class ReplicatedRecords implements SharedRecords {
  readonly #options: SharedRecordsOptions;
  /** By label: of sessions that this broker has a part in. */
  readonly #kept = new Map<string, Kept>();

  constructor(options: SharedRecordsOptions) {
    this.#options = options;
  }

  /** What keys the MAC of ids, as long as the log lives: the first that was written. @throws {RequestError} */
  async secret(): Promise<Uint8Array> {
    const { link, streams } = this.#options;
    for (;;) {
      const { ref } = await link.ask('put', { name: SECRET_STREAM, config: { ...KEEPS_NEWEST, ttlMs: 0 } });
      const [written] = (streams.positions(ref)?.head ?? 0) === 0 ? [] : await streams.read(ref, 0);
      if (written !== undefined) return readSecret(textOf(written));
      await this.#append(ref, 0, newSecret()).catch(ignoreMismatch);
    }
  }

  async begin(label: string, record: SessionRecord): Promise<void> {
    const { link, sessionTtlMs: ttlMs } = this.#options;
    const { ref } = await link.ask('put', { name: recordStream(label), config: { ...KEEPS_NEWEST, ttlMs } });
    await this.#append(ref, 0, JSON.stringify(record));
    this.#kept.set(label, { ref, record, seq: 1, wanted: null, writing: null });
  }

  put(label: string, record: SessionRecord): void {
    const kept = this.#kept.get(label);
    if (kept === undefined) return;
    if (kept.wanted === null && JSON.stringify(record) === JSON.stringify(kept.record)) return;
    kept.wanted = record;
    kept.writing ??= this.#write(kept).finally(() => {
      kept.writing = null;
    });
  }

  async committed(label: string): Promise<void> {
    const writing = this.#kept.get(label)?.writing;
    if (writing === null || writing === undefined) return;
    const late = sleep(COMMIT_MS_MAX, 'late' as const, { ref: false });
    if ((await Promise.race([writing, late])) === 'late') throw new RequestError('log_unavailable');
  }

  async remove(label: string): Promise<void> {
    this.#kept.delete(label);
    await this.#options.link.ask('remove', { name: recordStream(label) });
  }

  async look(label: string): Promise<SessionRecord | null> {
    const { streams } = this.#options;
    const known = this.#kept.get(label);
    const head = known === undefined ? null : (streams.positions(known.ref)?.head ?? null);
    if (known !== undefined && known.seq === head) return known.record;
    const ref = await streams.find(recordStream(label));
    if (ref === null) {
      this.#kept.delete(label);
      return null;
    }
    const kept =
      known?.ref.epoch === ref.epoch ? known : { ref, record: null, seq: 0, wanted: null, writing: null };
    await this.#read(kept);
    if (kept.record !== null) this.#kept.set(label, kept);
    return kept.record;
  }

  has(label: string): boolean {
    const kept = this.#kept.get(label);
    return kept !== undefined && this.#options.streams.positions(kept.ref) !== null;
  }

  touch(label: string): void {
    const kept = this.#kept.get(label);
    if (kept !== undefined) this.#options.streams.touch(kept.ref);
  }

  forget(label: string): void {
    this.#kept.delete(label);
  }

  async #read(kept: Kept): Promise<void> {
    const { streams } = this.#options;
    const head = streams.positions(kept.ref)?.head ?? 0;
    const [newest] = head <= kept.seq ? [] : await streams.read(kept.ref, head - 1);
    if (newest === undefined || newest.seq <= kept.seq) return;
    kept.record = JSON.parse(textOf(newest)) as SessionRecord;
    kept.seq = newest.seq;
  }

  async #write(kept: Kept): Promise<void> {
    while (kept.wanted !== null) {
      const { wanted, record: before } = kept;
      try {
        await this.#append(kept.ref, kept.seq, JSON.stringify(wanted));
        kept.seq++;
        kept.record = wanted;
        if (kept.wanted === wanted) kept.wanted = null;
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        // One that has become larger than the log takes leaves the one before in force.
        if (['stream_not_found', 'event_too_large'].includes(error.code)) kept.wanted = null;
        else if (error.code !== 'head_mismatch') await sleep(AGAIN_MS);
        else await this.#mergeInto(kept, before);
      }
    }
  }

  async #mergeInto(kept: Kept, before: SessionRecord | null): Promise<void> {
    await this.#options.streams.find(kept.ref.name);
    await this.#read(kept);
    const { record: theirs, wanted } = kept;
    if (theirs !== null && wanted !== null && before !== null) {
      kept.wanted = mergeRecords(before, wanted, theirs);
    }
  }

  async #append({ name, epoch }: StreamRef, head: number, text: string): Promise<void> {
    const publish = { parts: partsOf(text, null), claim: null, creates: false, ifHead: { epoch, seq: head } };
    await this.#options.link.ask('publish', { name, publish });
  }
}

function ignoreMismatch(error: unknown): void {
  if (!(error instanceof RequestError && error.code === 'head_mismatch')) throw error;
}

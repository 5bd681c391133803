import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StreamConfig } from '#gapless/core/retention.js';
import type {
  EventLog,
  EventLogReader,
  LoggedStream,
  LogId,
  LogRun,
  ReadRange,
} from '#gapless/storage/event-log.js';
import { openLmdbReader } from '#gapless/storage/lmdb/lmdb-reader.js';
import { openLmdbLog } from '#gapless/storage/lmdb/open-lmdb-log.js';
import { MemoryLog, MemoryMedium, MemoryReader } from '../support/memory-log.js';

/** What the tests of all logs need: frames whose content follows from their seq, and a log that can be opened again. */

export const EPOCH = 'k3v9x2m7qa';

const encoder = new TextEncoder();

export function configOf(
  retention: Partial<StreamConfig['retention']> = {},
  overflow: StreamConfig['overflow'] = 'evict',
): StreamConfig {
  return { retention: { events: 0, bytes: 0, ageMs: 0, ...retention }, overflow, ttlMs: 0 };
}

/** The frame of an event: which bytes it has is a matter of its stream, seq and size alone. */
export function frameOf(id: LogId, seq: number, dataBytes: number): Uint8Array {
  const text = `stream ${id} event ${seq} `.repeat(Math.ceil(dataBytes / 16) + 1).slice(0, dataBytes);
  const lines = seq % 3 === 0 ? `data: ${text}\ndata: \ndata: ${seq}` : `data: ${text}`;
  return encoder.encode(`id: ${EPOCH}.${seq}\n${lines}\n\n`);
}

/** The events from `firstSeq` on, one for each of `sizes`. */
export function runOf(id: LogId, firstSeq: number, sizes: readonly number[]): LogRun {
  const frames = Buffer.concat(sizes.map((size, index) => frameOf(id, firstSeq + index, size)));
  return { firstSeq, lastSeq: firstSeq + sizes.length - 1, frames };
}

/** For those who know an event's seq and nothing else: now and then one that is larger than a merged block. */
export function sizeOfSeq(seq: number): number {
  return seq % 41 === 0 ? 40_000 : (seq * 131) % 700;
}

export function sizesOf(count: number, dataBytes: number): number[] {
  return new Array<number>(count).fill(dataBytes);
}

/** What follows a cursor, of all that is committed. */
export function after(afterSeq: number, bytesMax: number, floor = 1): ReadRange {
  return { afterSeq, floor, committed: Number.MAX_SAFE_INTEGER, bytesMax };
}

export interface LogStage {
  readonly log: EventLog;
  readonly reader: EventLogReader;
  /** What `load` gave when the log was opened. */
  readonly loaded: readonly LoggedStream[];
  /** Opens the same log again; what was not committed is lost. */
  reopen(): Promise<LogStage>;
  dispose(): Promise<void>;
}

export function memoryStage(medium = new MemoryMedium()): LogStage & { log: MemoryLog } {
  const log = new MemoryLog(medium);
  const loaded = [...log.load()];
  const reader = new MemoryReader(medium);
  const dispose = async () => {
    await reader.dispose();
    await log.dispose();
  };
  const reopen = async () => {
    await dispose();
    return memoryStage(medium);
  };
  return { log, reader, loaded, reopen, dispose };
}

export function makeDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'gapless-storage-'));
}

export interface LmdbStage extends LogStage {
  readonly directory: string;
  reopen(): Promise<LmdbStage>;
}

/** Syncing is left out: what a test can see of a commit is the same, and it takes a tenth of the time. */
export function lmdbStage(directory = makeDirectory()): LmdbStage {
  const log = openLmdbLog({ directory, syncEachCommit: false });
  const loaded = [...log.load()];
  const reader = openLmdbReader(directory);
  const close = async () => {
    await reader.dispose();
    await log.dispose();
  };
  const reopen = async () => {
    await close();
    return lmdbStage(directory);
  };
  const dispose = async () => {
    await close();
    rmSync(directory, { recursive: true });
  };
  return { log, reader, loaded, directory, reopen, dispose };
}

/** Commits until nothing is left to delete in the background. */
export async function settleDeletes(log: EventLog): Promise<void> {
  for (let commits = 0; log.hasPendingDeletes; commits++) {
    assert.ok(commits < 10_000, 'deleting comes to an end');
    await log.commit();
  }
}

/** Reads a stream from a cursor to its end, checking that each read begins where the one before ended (I1). */
export function readAll(
  { log, reader }: Pick<LogStage, 'log' | 'reader'>,
  id: LogId,
  afterSeq: number,
  bytesMax: number,
): { lastSeq: number; frames: Buffer } {
  const parts: Uint8Array[] = [];
  let lastSeq = afterSeq;
  for (;;) {
    const run = reader.read(id, after(lastSeq, bytesMax, log.floor(id)));
    if (run === null) return { lastSeq, frames: Buffer.concat(parts) };
    assert.equal(run.firstSeq, lastSeq + 1, 'I1: a read begins after its cursor');
    assert.ok(run.lastSeq >= run.firstSeq);
    parts.push(run.frames);
    lastSeq = run.lastSeq;
  }
}

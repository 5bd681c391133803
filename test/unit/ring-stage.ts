import assert from 'node:assert/strict';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { ANY_HEAD, APPENDED, Appender } from '#gapless/ring/append.js';
import type { ProducerClaim } from '#gapless/ring/claim-judge.js';
import { commitStream, readPositions, type StreamPositions } from '#gapless/ring/lifecycle.js';
import { FrameRun, READ_OK, RingReader } from '#gapless/ring/read.js';
import { createRings, type ProducerLimits, Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { NOW_MS, openRingStream, type RingStreamOptions } from './ring-open.js';

export interface StageOptions extends Partial<RingStreamOptions> {
  readonly slot?: number;
}

const PRODUCERS: ProducerLimits = { countMax: [1000, 1000], ttlMs: [60_000, 60_000], bytesMax: 2 ** 20 };

/** Rings with one publisher and one reader in this thread, for tests that say each step themselves. */
export class RingStage {
  readonly rings: Rings;
  readonly appender: Appender;
  readonly reader: RingReader;
  readonly #batch = new FrameBatch(1 << 24);
  readonly #run = new FrameRun(64 * 1024);
  nowMs = NOW_MS;

  constructor(memoryBytes: number, { streamsMax = 4, durable = false } = {}) {
    this.rings = new Rings(createRings({ streamsMax, memoryBytes, durable, producers: PRODUCERS }));
    this.appender = new Appender(this.rings);
    this.reader = new RingReader(this.rings);
  }

  open(options: StageOptions = {}): StreamHandle {
    const { slot = 0, epoch = 'abcdefgh01', events = 0, bytes = 0, dataBytesMax = 2 ** 20 } = options;
    return openRingStream(this.rings, slot, { epoch, events, bytes, dataBytesMax });
  }

  /** Appends one batch of texts. @returns a constant of append.ts. */
  tryAppend(stream: StreamHandle, ...texts: readonly string[]): number {
    this.#batch.reset();
    for (const text of texts) this.#batch.pushText(Buffer.from(text), 0, Buffer.byteLength(text), null);
    return this.appender.append(stream, this.#batch, this.nowMs, ANY_HEAD);
  }

  /** The same, for a producer's publish. */
  tryAppendOf(claim: ProducerClaim, stream: StreamHandle, text: string): number {
    this.#batch.reset();
    this.#batch.pushText(Buffer.from(text), 0, Buffer.byteLength(text), null);
    return this.appender.append(stream, this.#batch, this.nowMs, ANY_HEAD, claim);
  }

  append(stream: StreamHandle, ...texts: readonly string[]): void {
    assert.equal(this.tryAppend(stream, ...texts), APPENDED);
  }

  /** What the log thread does when the log has everything up to a seq; the head, if none is given. */
  commit(stream: StreamHandle, seq = this.positions(stream).head): void {
    assert.equal(commitStream(this.rings, stream, { seq, logFloorSeq: 1 }), true);
  }

  /** The texts of the events after a cursor, which must be there. */
  texts(stream: StreamHandle, afterSeq: number): string[] {
    assert.equal(this.reader.read(stream, afterSeq, 2 ** 24, this.#run), READ_OK);
    return parseFrames(this.#run.frames).map(({ data }) => Buffer.from(data).toString());
  }

  positions(stream: StreamHandle): StreamPositions {
    const positions = readPositions(this.rings, stream);
    assert.ok(positions !== null);
    return positions;
  }

  get usedBytes(): number {
    return this.rings.arena.usage().usedBytes;
  }
}

/** `count` texts `<name>0`, `<name>1` …, each filled up to `bytes`. */
export function texts(name: string, count: number, bytes = 0): string[] {
  return Array.from({ length: count }, (_, i) => `${name}${i}`.padEnd(bytes, '.'));
}

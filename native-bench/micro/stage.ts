import { EdgeStream } from '#gapless/broker/edge-stream.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED, Appender } from '#gapless/ring/append.js';
import { openStream } from '#gapless/ring/lifecycle.js';
import { RingReader } from '#gapless/ring/read.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { decodePublish } from '#gapless/wire/publish-body.js';

const MIB = 1024 * 1024;
const EPOCH = 'k3v9x0q2ab';

export const EVENT_BYTES = 100;
export const LIMITS = { eventBytesMax: MIB, batchEventsMax: 65_536 };

/** One stream in a ring of its own, as an edge has it. */
export class Stage {
  readonly stream: EdgeStream;
  readonly reader: RingReader;
  readonly #appender: Appender;

  constructor() {
    const rings = new Rings(createRings({ streamsMax: 1, memoryBytes: 64 * MIB }));
    const retention = { events: 0, bytes: 4 * MIB };
    const handle = openStream(rings, 0, { epoch: EPOCH, retention, dataBytesMax: 16 * MIB, nowMs: 0 });
    this.stream = new EdgeStream({
      ...handle,
      name: 'micro',
      config: { retention: { ...retention, ageMs: 0 }, overflow: 'evict', ttlMs: 0 },
    });
    this.reader = new RingReader(rings);
    this.#appender = new Appender(rings);
  }

  append(batch: FrameBatch): void {
    const outcome = this.#appender.append(this.stream, batch, 0, ANY_HEAD);
    if (outcome !== APPENDED) throw new Error(`an append came to ${outcome}`);
  }

  get headSeq(): number {
    return this.#appender.lastSeq;
  }
}

export function textBody(): Uint8Array {
  return Buffer.from('x'.repeat(EVENT_BYTES));
}

export function linesBody(events: number): Uint8Array {
  return Buffer.from(`${'x'.repeat(EVENT_BYTES)}\n`.repeat(events));
}

/** Events, framed and ready to be appended. */
export function batchOf(events: number): FrameBatch {
  const batch = new FrameBatch(MIB);
  decodePublish('application/x-ndjson', linesBody(events), null, LIMITS, batch);
  return batch;
}

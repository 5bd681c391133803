import { parentPort, workerData } from 'node:worker_threads';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED, Appender } from '#gapless/ring/append.js';
import { RingReader } from '#gapless/ring/read.js';
import { Rings, type RingsBuffers, type StreamHandle } from '#gapless/ring/rings.js';
import { Wakes } from '#gapless/ring/wake-queue.js';
import { Prng } from '../support/prng.js';

export interface WakeWorkerData {
  readonly role: 'publisher' | 'edge';
  readonly index: number;
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly streams: readonly StreamHandle[];
  /** One word per edge: how many events it has read, over all streams. */
  readonly readCounts: SharedArrayBuffer;
  /** One word: how many events were appended, over all streams. */
  readonly appendedCount: SharedArrayBuffer;
}

export interface WakeOrder {
  readonly seed: number;
  /** Publisher: events to append. Edge: events that all streams will have had, after which it reports. */
  readonly events: number;
}

/** Edge: how often it really slept. Publisher: 0. */
export type WakeReport = number;

const { role, index, rings: buffers, wakes: wakesBuffer, streams, ...counts } = workerData as WakeWorkerData;
const rings = new Rings(buffers);
const wakes = new Wakes(wakesBuffer, rings);
const readCounts = new Int32Array(counts.readCounts);
const appendedCount = new Int32Array(counts.appendedCount);

parentPort?.on('message', async (order: WakeOrder) => {
  parentPort?.postMessage(role === 'edge' ? await follow(order) : publish(order));
});

/**
 * Appends and tells, mostly waiting until every edge has read all and is about to sleep, for that is when a wake
 * can be lost; and now and then several at once.
 */
function publish({ seed, events }: WakeOrder): WakeReport {
  const prng = new Prng(seed + index);
  const appender = new Appender(rings);
  const batch = new FrameBatch(1024);
  batch.pushText(Buffer.from('x'), 0, 1, null);
  for (let i = 0; i < events; i++) {
    const stream = prng.pick(streams);
    if (appender.append(stream, batch, 0, ANY_HEAD) !== APPENDED) throw new Error('not appended');
    Atomics.add(appendedCount, 0, 1);
    wakes.tell(stream.slot, appender.toTell, -1);
    if (prng.chance(0.5)) awaitReaders();
    for (let left = prng.below(400); left > 0; left--) Atomics.load(appendedCount, 0);
  }
  return 0;
}

/** Until each edge has read as much as was appended when this began. Never ends if a wake was lost. */
function awaitReaders(): void {
  const appended = Atomics.load(appendedCount, 0);
  for (let edge = 0; edge < readCounts.length; edge++) {
    for (let read = Atomics.load(readCounts, edge); read < appended; read = Atomics.load(readCounts, edge)) {
      Atomics.wait(readCounts, edge, read, 100);
    }
  }
}

/** An edge by the rules of the queue: take, read, settle, look again, sleep. To read is to see how far one may. */
async function follow({ events }: WakeOrder): Promise<WakeReport> {
  const reader = new RingReader(rings);
  const cursors = streams.map(() => 0);
  let slept = 0;
  const readToEnd = (which: number): void => {
    reader.look(streams[which] as StreamHandle);
    Atomics.add(readCounts, index, reader.committedSeq - (cursors[which] as number));
    cursors[which] = reader.committedSeq;
  };
  for (;;) {
    const ticket = wakes.ticket(index);
    for (let slot = wakes.take(index); slot >= 0; slot = wakes.take(index)) {
      const which = streams.findIndex((stream) => stream.slot === slot);
      readToEnd(which);
      wakes.settle(slot, index);
      readToEnd(which);
    }
    Atomics.notify(readCounts, index);
    if (Atomics.load(readCounts, index) >= events) return slept;
    const woken = wakes.wait(index, ticket);
    if (woken === null) continue;
    slept++;
    await woken;
  }
}

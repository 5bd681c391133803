import { parentPort, workerData } from 'node:worker_threads';
import { EdgeBroker } from '#gapless/broker/edge-broker.js';
import type { EdgeStream, StreamRef } from '#gapless/broker/edge-stream.js';
import { type Ending, endingFrame } from '#gapless/broker/ending.js';
import type { Sink, Subscription } from '#gapless/broker/subscription.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { ANY_HEAD, APPEND_GONE, APPENDED } from '#gapless/ring/append.js';
import { Counters } from '#gapless/ring/counters.js';
import { Rings, type RingsBuffers } from '#gapless/ring/rings.js';
import { Wakes } from '#gapless/ring/wake-queue.js';
import { Prng } from '../support/prng.js';
import { judgeRun, markedText } from './marked-event.js';

export interface EdgeWorkerData {
  readonly edge: number;
  readonly edges: number;
  readonly rings: RingsBuffers;
  readonly wakes: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
}

export interface EdgeOrder {
  readonly seed: number;
  readonly refs: readonly StreamRef[];
  readonly publishes: number;
  readonly eventsPerPublish: number;
  /** One word per stream and edge: the newest seq that the edge's first reader of the stream was written. */
  readonly read: SharedArrayBuffer;
  /** One word: how many edges have all their first readers. Nobody publishes before. */
  readonly joined: SharedArrayBuffer;
  /** Publish only when all edges have read what this one published before, so that nobody who lives is ever behind. */
  readonly inStep: boolean;
  /** Sockets that now and then do not take a write, and readers that come late and catch up. */
  readonly uneven: boolean;
  /** The event that ends every reader. */
  readonly ending: 'stream_closed' | 'stream_deleted';
}

/** Three of them: half of it is published, all of it, and all readers have ended. */
export interface EdgeReport {
  readonly problem: string | null;
  /** Events written to readers so far. */
  readonly events: number;
}

const { edge, edges, rings: buffers, wakes, counters } = workerData as EdgeWorkerData;
const rings = new Rings(buffers);
const broker = new EdgeBroker({
  edge,
  rings,
  wakes: new Wakes(wakes, rings),
  counters: new Counters(counters, edge),
  durable: null,
  directory: { resolve: async () => null },
  writeBytesMax: 4096,
  pageBytesMax: 4096,
  heartbeatIntervalMs: 60_000,
  now: () => 0,
  random: () => 0.5,
  defer: (callback) => setImmediate(callback),
});
const batch = new FrameBatch(1 << 20);
const READERS = 3;
const MARKS_PER_EDGE = 1 << 24;

/** A socket that judges all that is written to it. */
class JudgingSink implements Sink {
  readonly beats = 'quiet';
  subscription: Subscription | null = null;
  problem: string | null = null;
  events = 0;
  readonly ended: Promise<void>;
  #cursor = 0;
  #end: () => void = () => {};
  readonly #order: EdgeOrder;
  readonly #stream: EdgeStream;
  readonly #prng: Prng;
  readonly #onRead: (seq: number) => void;

  constructor(order: EdgeOrder, stream: EdgeStream, prng: Prng, onRead: (seq: number) => void) {
    this.#order = order;
    this.#stream = stream;
    this.#prng = prng;
    this.#onRead = onRead;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  write(frames: Uint8Array | string): boolean {
    if (typeof frames === 'string') return true;
    const lastSeq = parseFrames(frames).at(-1)?.seq ?? 0;
    const range = { epoch: this.#stream.epoch, firstSeq: this.#cursor + 1, lastSeq };
    this.problem ??= judgeRun(frames, range, () => {});
    this.events += lastSeq - this.#cursor;
    this.#cursor = lastSeq;
    this.#onRead(lastSeq);
    if (!this.#order.uneven || !this.#prng.chance(0.2)) return true;
    setImmediate(() => broker.drained(this.subscription as Subscription));
    return false;
  }

  beat(): boolean {
    return true;
  }

  end(ending: Ending): void {
    const lastFrame = endingFrame(ending);
    if (!lastFrame.startsWith(`event: ${this.#order.ending}\n`)) this.problem ??= `ended with ${lastFrame}`;
    const cursor = `${this.#stream.epoch}.${this.#cursor}`;
    if (!lastFrame.includes(cursor)) this.problem ??= `ended at ${this.#cursor} with ${lastFrame}`;
    this.#end();
  }

  cut(): void {
    this.problem ??= `${this.#stream.name} was cut at ${this.#cursor}`;
    this.#end();
  }
}

parentPort?.on('message', async (order: EdgeOrder) => {
  const prng = new Prng(order.seed + edge);
  const streams = order.refs.map((ref) => broker.streams.adopt(ref));
  const read = new Int32Array(order.read);
  const sinks = streams.flatMap((stream, which) =>
    Array.from({ length: READERS }, (_, reader) =>
      join(order, stream, prng, (seq) => {
        if (reader === 0) Atomics.store(read, which * edges + edge, seq);
      }),
    ),
  );
  const joined = new Int32Array(order.joined);
  Atomics.add(joined, 0, 1);
  while (Atomics.load(joined, 0) < edges) await nextTurn();
  const problem = await publish(order, streams, prng, sinks);
  report(problem, sinks);
  await Promise.all(sinks.map(({ ended }) => ended));
  report(null, sinks);
});

function report(problem: string | null, sinks: readonly JudgingSink[]): void {
  const events = sinks.reduce((sum, sink) => sum + sink.events, 0);
  const found = problem ?? sinks.find((sink) => sink.problem !== null)?.problem ?? null;
  parentPort?.postMessage({ problem: found, events } satisfies EdgeReport);
}

/** Subscribes from the beginning. */
function join(
  order: EdgeOrder,
  stream: EdgeStream,
  prng: Prng,
  onRead: (seq: number) => void = () => {},
): JudgingSink {
  const sink = new JudgingSink(order, stream, prng, onRead);
  broker.expectReader(stream);
  sink.subscription = broker.subscribe(stream, { sink, cursor: 0, rendering: null, tellUnavailable: false });
  broker.start(sink.subscription, true);
  return sink;
}

async function publish(
  order: EdgeOrder,
  streams: readonly EdgeStream[],
  prng: Prng,
  sinks: JudgingSink[],
): Promise<string | null> {
  let mark = edge * MARKS_PER_EDGE;
  for (let i = 0; i < order.publishes; i++) {
    if (i === order.publishes >> 1) report(null, sinks);
    const which = prng.below(streams.length);
    const stream = streams[which] as EdgeStream;
    batch.reset();
    for (let event = 0; event < order.eventsPerPublish; event++) {
      const text = markedText(++mark);
      batch.pushText(text, 0, text.length, null);
    }
    const outcome = broker.append(stream, batch, { ifHeadSeq: ANY_HEAD, claim: null });
    if (outcome === APPEND_GONE && order.ending === 'stream_deleted') continue;
    if (outcome !== APPENDED) return `append said ${outcome}`;
    if (order.uneven && sinks.length < 20 && prng.chance(0.1)) sinks.push(join(order, stream, prng));
    if (order.inStep) await untilRead(order, which, broker.appended.lastSeq, sinks);
    else if (prng.chance(0.7)) await nextTurn();
  }
  return null;
}

/** Until every edge has read so far, or a reader of this one was cut off. */
async function untilRead(
  order: EdgeOrder,
  which: number,
  seq: number,
  sinks: readonly JudgingSink[],
): Promise<void> {
  const read = new Int32Array(order.read);
  const isRead = () =>
    Array.from({ length: edges }, (_, other) => Atomics.load(read, which * edges + other)).every(
      (lastSeq) => lastSeq >= seq || lastSeq < 0,
    );
  while (!isRead()) {
    if (sinks.some(({ problem }) => problem !== null)) Atomics.store(read, which * edges + edge, -1);
    await nextTurn();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

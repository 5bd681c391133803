import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Directory } from '#gapless/broker/directory.js';
import { EdgeBroker } from '#gapless/broker/edge-broker.js';
import type { EdgeStream } from '#gapless/broker/edge-stream.js';
import { type Journal, NO_JOURNAL } from '#gapless/broker/journal.js';
import type { Rendering } from '#gapless/broker/rendering.js';
import type { Subscription } from '#gapless/broker/subscription.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED } from '#gapless/ring/append.js';
import { Counters, createCounters } from '#gapless/ring/counters.js';
import { RingReader } from '#gapless/ring/read.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { FakeSink } from './broker-fake-sink.js';

/** More turns than any test needs: an edge that goes on turning has nothing left to do and does not notice. */
const TURNS_MAX = 10_000;

/** The wake queues, with the sleep of an edge in the hands of the test. */
export class SteppedWakes extends Wakes {
  /** Called when an edge finds its queue empty: another thread may act at that very moment. */
  onEmpty: () => void = () => {};
  readonly #sleepers = new Map<number, { ticket: number; wake: () => void }>();

  override take(edge: number): number {
    const slot = super.take(edge);
    if (slot < 0) this.onEmpty();
    return slot;
  }

  override wait(edge: number, ticket: number): Promise<unknown> | null {
    if (this.ticket(edge) !== ticket) return null;
    assert.ok(!this.#sleepers.has(edge), 'an edge sleeps once');
    // All that is asked of it: to call back once.
    const sleep = { then: (wake: () => void) => this.#sleepers.set(edge, { ticket, wake }) };
    return sleep as unknown as Promise<unknown>;
  }

  /** Wakes the edge if it sleeps and somebody has notified it. */
  wakeIfNotified(edge: number): void {
    const sleeper = this.#sleepers.get(edge);
    if (sleeper === undefined || sleeper.ticket === this.ticket(edge)) return;
    this.#sleepers.delete(edge);
    sleeper.wake();
  }
}

export interface StageOptions {
  readonly edges?: number;
  readonly streamsMax?: number;
  readonly memoryBytes?: number;
  readonly streamBytesMax?: number;
  readonly publishBytesMax?: number;
  readonly writeBytesMax?: number;
  readonly heartbeatIntervalMs?: number;
  readonly retention?: { events?: number; bytes?: number; ageMs?: number };
  readonly ttlMs?: number;
  /** Whether what is appended waits for a commit, which is in the hands of the test. */
  readonly durable?: boolean;
  readonly journal?: Journal;
  /** Whether edges sleep on the shared word, or until the test has them look. */
  readonly sleep?: 'for real' | 'by hand';
}

export interface SubscribeOptions {
  readonly cursor?: number;
  readonly rendering?: Rendering;
  readonly tellUnavailable?: boolean;
  readonly sink?: FakeSink;
}

export interface Subscriber {
  readonly sink: FakeSink;
  readonly subscription: Subscription;
}

/** One edge whose turns, clock and chance are in the hands of the test. */
export class StageEdge {
  random = 0;
  readonly broker: EdgeBroker;
  readonly counters: Counters;
  readonly #stage: BrokerStage;
  readonly #edge: number;
  readonly #batch = new FrameBatch(1 << 26);
  #deferred: (() => void)[] = [];
  #due: () => void = () => {};

  constructor(stage: BrokerStage, edge: number, counters: Counters, options: StageOptions) {
    this.#stage = stage;
    this.#edge = edge;
    this.counters = counters;
    this.broker = new EdgeBroker({
      edge,
      rings: stage.rings,
      wakes: stage.wakes,
      counters,
      durable: null,
      directory: { resolve: async (name, create) => stage.directory.resolve(name, create) },
      writeBytesMax: options.writeBytesMax ?? 64 * 1024,
      pageBytesMax: 64 * 1024,
      heartbeatIntervalMs: options.heartbeatIntervalMs ?? 15_000,
      now: () => stage.nowMs,
      random: () => this.random,
      defer: (callback) => {
        this.#deferred.push(callback);
        this.#due();
      },
    });
  }

  /** One turn, if one is due: by what happened here, or because another edge woke this one. */
  turn(): boolean {
    const { wakes } = this.#stage;
    if (wakes instanceof SteppedWakes) wakes.wakeIfNotified(this.#edge);
    const due = this.#deferred;
    this.#deferred = [];
    for (const callback of due) callback();
    return due.length > 0;
  }

  /** Turns until there is nothing to do. @returns how many. */
  turns(): number {
    let count = 0;
    while (this.turn()) assert.ok(++count < TURNS_MAX, 'an edge with nothing to do comes to rest');
    return count;
  }

  /** Resolves when the next turn becomes due. */
  whenDue(): Promise<void> {
    return new Promise((resolve) => {
      this.#due = resolve;
    });
  }

  /** The stream as this edge knows it; made if there is none. */
  stream(name: string): EdgeStream {
    const ref = this.#stage.directory.resolve(name, true);
    assert.ok(ref !== null);
    return this.broker.streams.known(name) ?? this.broker.streams.adopt(ref);
  }

  /** As a request does it: interest, then positions, then registration. Without a cursor: live from now. */
  register(stream: EdgeStream, options: SubscribeOptions = {}): Subscriber {
    this.broker.expectReader(stream);
    const at = this.broker.positions(stream);
    assert.ok(at !== null);
    const sink = options.sink ?? new FakeSink();
    const subscription = this.broker.subscribe(stream, {
      sink,
      cursor: options.cursor ?? at.committed,
      rendering: options.rendering ?? null,
      tellUnavailable: options.tellUnavailable ?? false,
    });
    return { sink, subscription };
  }

  /** Registers, and begins at once. */
  subscribe(stream: EdgeStream, options: SubscribeOptions = {}): Subscriber {
    const subscriber = this.register(stream, options);
    this.broker.start(subscriber.subscription, true);
    return subscriber;
  }

  /** Registers with a socket that did not take the headers, so that nothing is written before `drained`. */
  subscribeHeld(stream: EdgeStream, options: SubscribeOptions = {}): Subscriber {
    const subscriber = this.register(stream, options);
    subscriber.sink.blocked = true;
    this.broker.start(subscriber.subscription, false);
    return subscriber;
  }

  tryPublish(stream: EdgeStream, texts: readonly string[], type: string | null = null): number {
    this.#batch.reset();
    for (const text of texts) this.#batch.pushText(Buffer.from(text), 0, Buffer.byteLength(text), type);
    return this.broker.append(stream, this.#batch, { ifHeadSeq: ANY_HEAD, claim: null });
  }

  publish(stream: EdgeStream, ...texts: readonly string[]): void {
    assert.equal(this.tryPublish(stream, texts), APPENDED);
  }

  publishTyped(stream: EdgeStream, type: string, ...texts: readonly string[]): void {
    assert.equal(this.tryPublish(stream, texts, type), APPENDED);
  }

  /** The sink has handed on what it buffered. */
  drained({ sink, subscription }: Subscriber): void {
    sink.blocked = false;
    sink.takes = true;
    this.broker.drained(subscription);
  }

  ticks(count: number): void {
    for (let i = 0; i < count; i++) {
      this.broker.tick();
      this.turns();
    }
  }
}

/**
 * Fails instead of turning for ever when an edge asks the rings the same question over and over.
 * @returns starts the count anew.
 */
export function boundReads(context: TestContext, readsMax: number): () => void {
  const { read } = RingReader.prototype;
  let reads = 0;
  RingReader.prototype.read = function (this: RingReader, ...args: Parameters<typeof read>) {
    assert.ok(++reads <= readsMax, 'the edge reads on and on');
    return read.apply(this, args);
  };
  context.after(() => {
    RingReader.prototype.read = read;
  });
  return () => {
    reads = 0;
  };
}

/** A directory and edges over the same rings, all in this thread. */
export class BrokerStage {
  nowMs = 1_700_000_000_000;
  readonly rings: Rings;
  readonly wakes: Wakes;
  readonly wakesBuffer: SharedArrayBuffer;
  readonly directory: Directory;
  readonly edges: readonly StageEdge[];
  #epochs = 0;

  constructor(options: StageOptions = {}) {
    const { edges = 1, streamsMax = 4, memoryBytes = 2 ** 22, durable = false } = options;
    this.rings = new Rings(createRings({ streamsMax, memoryBytes, durable }));
    this.wakesBuffer = createWakes(edges, streamsMax, durable ? 1 : 0);
    const QueueKind = options.sleep === 'for real' ? Wakes : SteppedWakes;
    this.wakes = new QueueKind(this.wakesBuffer, this.rings);
    this.directory = new Directory({
      rings: this.rings,
      wakes: this.wakes,
      defaults: {
        retention: { events: 0, bytes: 0, ageMs: 0, ...options.retention },
        overflow: 'evict',
        ttlMs: options.ttlMs ?? 0,
      },
      streamBytesMax: options.streamBytesMax ?? 2 ** 20,
      publishBytesMax: options.publishBytesMax ?? 2 ** 16,
      autoCreate: true,
      journal: options.journal ?? NO_JOURNAL,
      removed: () => undefined,
      ringBytes: 0,
      now: () => this.nowMs,
      randomBytes: (count) => this.#epochBytes(count),
    });
    const counters = createCounters(edges);
    this.edges = Array.from(
      { length: edges },
      (_, edge) => new StageEdge(this, edge, new Counters(counters, edge), options),
    );
  }

  get edge(): StageEdge {
    return this.edges[0] as StageEdge;
  }

  /** All edges turn until none has anything to do. */
  settle(): void {
    for (let rounds = 0; this.edges.some((edge) => edge.turns() > 0); rounds++) {
      assert.ok(rounds < TURNS_MAX, 'edges with nothing to do come to rest');
    }
  }

  /** Epochs that count up: no two alike, and the same in every run. */
  #epochBytes(count: number): Uint8Array {
    const epoch = ++this.#epochs;
    return Uint8Array.from({ length: count }, (_, i) => (i < 4 ? (epoch >> (5 * i)) & 31 : 0));
  }
}

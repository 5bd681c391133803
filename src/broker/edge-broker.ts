/**
 * The broker on one edge: appends, subscribes, reads pages, and keeps the fan-out going. No sockets, no clock
 * and no timers of its own: they are handed in.
 */

import type { FrameBatch } from '../core/sse-frame.js';
import { APPENDED, type AppendDetails, Appender } from '../ring/append.js';
import type { ProducerClaim } from '../ring/claim-judge.js';
import { Counter } from '../ring/counters.js';
import {
  addSubscribers,
  readPositions,
  type StreamPositions,
  touchStream,
  trimToRetention,
} from '../ring/lifecycle.js';
import { LOG_HEALTHY } from '../ring/log-status.js';
import { READ_OK, RingReader } from '../ring/read.js';
import { CatchUp } from './catch-up.js';
import { DrainLoop } from './drain-loop.js';
import type { EdgeBrokerOptions } from './edge-broker-options.js';
import type { EdgeStream, Waiter } from './edge-stream.js';
import { EdgeStreams } from './edge-streams.js';
import type { Ending } from './ending.js';
import { FanOut } from './fan-out.js';
import { Heartbeats } from './heartbeats.js';
import { lagsOf, type StreamLag, sampleLag } from './lag.js';
import { type PageRead, PageReader } from './page-reader.js';
import { slowestOf } from './readers.js';
import type { Rendering } from './rendering.js';
import { Replay } from './replay.js';
import { type Sink, Subscription } from './subscription.js';
import { SubscriptionList } from './subscription-list.js';

export class EdgeBroker {
  readonly streams: EdgeStreams;

  readonly #options: EdgeBrokerOptions;
  readonly #appender: Appender;
  readonly #reader: RingReader;
  readonly #fanOut: FanOut;
  readonly #loop: DrainLoop;
  readonly #subscriptions = new SubscriptionList();
  /** Streams with readers here. */
  readonly #read = new Set<EdgeStream>();
  readonly #pages: PageReader;
  readonly #heartbeats: Heartbeats;
  #uncommittedPublishes = 0;

  constructor(options: EdgeBrokerOptions) {
    this.#options = options;
    this.#appender = new Appender(options.rings);
    this.#reader = new RingReader(options.rings);
    this.#heartbeats = new Heartbeats(options.heartbeatIntervalMs, options.random);
    const { durable } = options;
    this.#pages = new PageReader({
      reader: this.#reader,
      replay: durable?.replay ?? null,
      bytesMax: options.pageBytesMax,
    });
    this.#fanOut = new FanOut({
      reader: this.#reader,
      counters: options.counters,
      writeBytesMax: options.writeBytesMax,
      catchUp: new CatchUp(options.counters, options.now),
      replay:
        durable === null
          ? null
          : new Replay({
              port: durable.replay,
              bytesMax: options.writeBytesMax,
              cacheBytesMax: durable.replayCacheBytes,
              arrived: (stream, afterSeq) => this.#replayed(stream, afterSeq),
            }),
      events: {
        overtaken: (subscription, at) => options.overtaken?.(subscription, at),
        ended: (subscription) => this.#leave(subscription),
        gone: (stream) => this.#drop(stream),
      },
    });
    this.streams = new EdgeStreams({
      rings: options.rings,
      directory: options.directory,
      replaced: (stream) => this.#fanOut.drain(stream),
    });
    this.#loop = new DrainLoop({
      edge: options.edge,
      wakes: options.wakes,
      fanOut: this.#fanOut,
      streamInSlot: (slot) => this.streams.inSlot(slot),
      settle: (stream) => this.#settle(stream),
      settled: (stream) => this.#settled(stream),
      defer: options.defer,
    });
    this.#loop.schedule();
  }

  /** More about what `append` said last, as in append.ts. */
  get appended(): AppendDetails {
    return this.#appender;
  }

  /** Appends, and has everybody who reads the stream woken. @returns a constant of append.ts. */
  append(
    stream: EdgeStream,
    batch: FrameBatch,
    { ifHeadSeq, claim }: { ifHeadSeq: number; claim: ProducerClaim | null },
  ): number {
    const outcome = this.#appender.append(stream, batch, this.#options.now(), ifHeadSeq, claim);
    if (outcome === APPENDED) {
      const own = this.#options.wakes.tell(stream.slot, this.#appender.toTell, this.#options.edge);
      if (own) this.#loop.schedule();
    }
    return outcome;
  }

  /** One consistent view of a stream (I8); null when it was deleted. */
  positions(stream: EdgeStream): StreamPositions | null {
    return readPositions(this.#options.rings, stream);
  }

  /**
   * Says that somebody is about to read here. From now on every append is announced, so that whoever looks
   * at the positions next, and registers in the same turn, misses nothing between the two (I8).
   */
  expectReader(stream: EdgeStream): void {
    if (this.#read.has(stream)) return;
    this.#read.add(stream);
    this.#options.wakes.addInterest(stream.slot, this.#options.edge);
  }

  /** Takes `expectReader` back when nobody came of it. */
  releaseReader(stream: EdgeStream): void {
    if (stream.hasReaders || !this.#read.delete(stream)) return;
    // One that is no more may have given its slot to another, whose readers here are to be told (I8).
    const current = this.streams.inSlot(stream.slot);
    if (current !== undefined && this.#read.has(current)) return;
    this.#options.wakes.removeInterest(stream.slot, this.#options.edge);
  }

  /** Registers a subscriber that has everything up to `cursor`. After `expectReader`, in the same turn; then `start`. */
  subscribe(
    stream: EdgeStream,
    options: { sink: Sink; cursor: number; rendering: Rendering | null; tellUnavailable: boolean },
  ): Subscription {
    const subscription = new Subscription({ stream, ...options });
    this.#heartbeats.enlist(subscription);
    this.#subscriptions.add(subscription);
    stream.add(subscription);
    if (!stream.isNowhere) addSubscribers(this.#options.rings, stream, 1);
    this.#options.counters.add(Counter.subscribers, 1);
    return subscription;
  }

  /**
   * Begins delivery, once the sink was given what comes before any event. The first run goes out at once, beside
   * that, as long as this turn has room; in a storm of resumes it saves each of them a system call or two.
   * @param taken what the sink said of what it was given.
   */
  start(subscription: Subscription, taken: boolean): void {
    if (!taken) return this.#stall(subscription);
    this.#fanOut.begin(subscription.stream, subscription);
    this.#loop.activate(subscription.stream);
  }

  /** The peer is gone. Nothing is written any more. */
  unsubscribe(subscription: Subscription): void {
    if (subscription.state === 'ended') return;
    subscription.stream.move(subscription, 'ended');
    this.#leave(subscription);
  }

  /** The sink has handed on all that was written: what was written is delivered, and it can take more. */
  drained(subscription: Subscription): void {
    if (subscription.state !== 'stalled') return;
    subscription.delivered = subscription.cursor;
    subscription.stream.move(subscription, 'ready');
    this.#loop.activate(subscription.stream);
  }

  /** Calls the waiter once there is more than it has. After `expectReader`, in the same turn. */
  addWaiter(stream: EdgeStream, waiter: Waiter): void {
    stream.waiters.add(waiter);
    addSubscribers(this.#options.rings, stream, 1);
    this.#loop.activate(stream);
  }

  /**
   * Calls the waiter when what was appended is committed. After `expectReader`, which was before the append, so that
   * the commit is announced here whenever it comes. A publisher is no subscriber.
   */
  addCommitWaiter(stream: EdgeStream, waiter: Waiter): void {
    stream.waiters.add(waiter);
    this.#uncommittedPublishes++;
  }

  removeWaiter(stream: EdgeStream, waiter: Waiter): void {
    if (!stream.waiters.delete(waiter)) return;
    if (waiter.reads) addSubscribers(this.#options.rings, stream, -1);
    else this.#uncommittedPublishes--;
    this.releaseReader(stream);
  }

  /** Events after a cursor, as many as a page holds. The stream is in use (contract 2.1, `ttlMs`). */
  readEvents(stream: EdgeStream, afterSeq: number): Promise<PageRead> {
    touchStream(this.#options.rings, stream, this.#options.now());
    return this.#pages.read(stream, afterSeq);
  }

  /** Whether what is appended waits for a log's commit. */
  get isDurable(): boolean {
    return this.#options.durable !== null;
  }

  /** Whether the durable log takes appends: LOG_HEALTHY, or why not. */
  get logFault(): number {
    return this.#options.durable?.status.fault ?? LOG_HEALTHY;
  }

  /** How often `tick` has to be called, milliseconds. */
  get tickIntervalMs(): number {
    return this.#heartbeats.tickIntervalMs;
  }

  /** The cold path's clock: heartbeats, and readers that eviction passed while they were stalled. */
  tick(): void {
    this.#heartbeats.tick++;
    this.#loop.tick = this.#heartbeats.tick;
    this.#loop.schedule();
    for (const subscription of this.#subscriptions) {
      if (subscription.state === 'stalled') this.#checkOvertaken(subscription);
      else if (this.#heartbeats.isDue(subscription)) this.#heartbeat(subscription);
    }
    this.#options.counters.set(Counter.discardedCopies, this.#reader.discarded);
    this.#options.counters.set(Counter.reclaimedRings, this.#appender.reclaimed);
  }

  /** Observes how far every subscriber is behind. */
  sampleLag(): void {
    sampleLag(this.#read, this.#reader, this.#options.counters);
  }

  /** How far behind the readers of these streams are, of all where `names` is null. */
  lags(names: readonly string[] | null): StreamLag[] {
    if (names === null) return lagsOf(this.#read, this.#reader);
    const known = names.map((name) => this.streams.known(name));
    return lagsOf(
      known.filter((stream) => stream !== null && this.#read.has(stream)) as EdgeStream[],
      this.#reader,
    );
  }

  /** Who reads a stream here: those furthest behind, at most so many, and how many there are. */
  readers(name: string, epoch: string, countMax: number): { slowest: Subscription[]; count: number } {
    const stream = this.streams.known(name);
    if (stream === null || stream.epoch !== epoch) return { slowest: [], count: 0 };
    return { slowest: slowestOf(stream, countMax), count: stream.subscribers };
  }

  /** Answers everybody who waits for an event, with what there is. */
  wakeReaders(): void {
    for (const stream of [...this.#read]) {
      for (const waiter of [...stream.waiters]) if (waiter.reads) waiter.wake(stream.drainedSeq);
    }
  }

  /** Publishers whose commit has not come. */
  get uncommittedPublishes(): number {
    return this.#uncommittedPublishes;
  }

  /**
   * Ends subscriptions that `select` picks, properly. For draining.
   * @param all also those who have not been given all that is committed; they resume elsewhere.
   */
  endWhere(select: () => boolean, ending: () => Ending, all: boolean): void {
    for (const subscription of this.#subscriptions) {
      const isBehind = subscription.delivered < subscription.stream.drainedSeq;
      if ((isBehind && !all) || !select()) continue;
      this.unsubscribe(subscription);
      subscription.sink.end(ending());
    }
  }

  get subscriberCount(): number {
    return this.#subscriptions.size;
  }

  /** The socket of this subscription is taken up by something else than it wrote; `drained` ends that. */
  hold(subscription: Subscription): void {
    if (subscription.state !== 'stalled') this.#stall(subscription);
  }

  /**
   * Cuts a stalled reader off whose next event is gone. One that is to be told waits until its socket takes the
   * notice: by then it says where the stream stands, and not where it stood (contract 4.6).
   */
  #checkOvertaken(subscription: Subscription): void {
    const { stream, tellUnavailable } = subscription;
    if (tellUnavailable) return;
    if (this.#reader.look(stream) !== READ_OK) return;
    if (subscription.cursor + 1 < this.#reader.lowestSeq) {
      this.#fanOut.endOvertaken(stream, subscription, this.#reader);
    }
  }

  #heartbeat(subscription: Subscription): void {
    this.#options.counters.add(Counter.heartbeats, 1);
    if (!this.#heartbeats.beat(subscription)) this.#stall(subscription);
  }

  #stall(subscription: Subscription): void {
    // One that waits for the log is stalled as well: what comes is kept, and asked for again when the socket drained.
    if (subscription.state !== 'ended') subscription.stream.move(subscription, 'stalled');
  }

  /** Takes a subscription that has ended off the edge. */
  #leave(subscription: Subscription): void {
    this.#subscriptions.remove(subscription);
    if (!subscription.stream.isNowhere) addSubscribers(this.#options.rings, subscription.stream, -1);
    this.#options.counters.add(Counter.subscribers, -1);
    this.#options.left?.(subscription);
    this.releaseReader(subscription.stream);
  }

  /** What those who stand at this cursor wait for has come from the log, or will not. @returns whether anybody does. */
  #replayed(stream: EdgeStream, afterSeq: number): boolean {
    const waiting = stream.waiting.filter(({ cursor }) => cursor === afterSeq);
    for (const subscription of waiting) stream.move(subscription, 'ready');
    this.#loop.activate(stream);
    return waiting.length > 0;
  }

  #drop(stream: EdgeStream): void {
    this.streams.forget(stream);
    this.releaseReader(stream);
  }

  #settle(stream: EdgeStream): boolean {
    const { drainedSeq: seq, drainedClosed: closed, hasReaders } = stream;
    return this.#reader.settle(stream, this.#options.edge, { seq, closed, hasReaders });
  }

  #settled(stream: EdgeStream): void {
    if (stream.trimsAfterReading) trimToRetention(this.#options.rings, stream);
  }
}

/**
 * Fan-out on one edge: live delivery, a slow reader catching up and a resume are this one path. Write the
 * bytes from the cursor to the head, as far as the socket takes them.
 *
 * Each stream with news is drained once per loop turn. A run of frames is copied out of the ring once and
 * written to everybody who stands at that cursor; under load the runs grow by themselves.
 *
 * Hot path: no allocation per event or write, no await, no closures, no exceptions but for broken invariants.
 */

import { assert } from '../assert.js';
import { formatCursor } from '../core/cursor.js';
import { Counter, type Counters } from '../ring/counters.js';
import type { RingReader } from '../ring/read.js';
import { FrameRun, READ_CAUGHT_UP, READ_GONE, READ_OK, READ_OVERTAKEN } from '../ring/read.js';
import type { CatchUp } from './catch-up.js';
import type { EdgeStream } from './edge-stream.js';
import { type OvertakenAt, overtakenEnding } from './refusal.js';
import type { Replay } from './replay.js';
import { rendered, type SharedRun } from './shared-run.js';
import type { Subscription } from './subscription.js';

/** A read whose first frame is not the expected one: never happens, and is never passed on. */
const READ_TORN = -1;
/** The next event is in the durable log, and is being read from there. */
const READ_WAITING = -2;
/** The durable log could not be read. */
const READ_FAILED = -3;

/** Runs kept within a turn, so that readers at a few different cursors still share copies. */
const RUNS_MAX = 8;
/**
 * What is written in one turn before sockets are looked at again: half a millisecond's worth of small writes, a few
 * milliseconds' of large ones. Publishers wait no longer for their answers than that, and what they bring meanwhile goes
 * out with the rest: whoever has not had the events before gets all of them in one write.
 */
const TURN_WRITES_MAX = 64;
const TURN_BYTES_MAX = 4 * 1024 * 1024;

interface KeptRun extends SharedRun {
  readonly run: FrameRun;
  /** Null: holds nothing of this turn. */
  stream: EdgeStream | null;
}

/** What the fan-out tells the edge about. */
export interface FanOutEvents {
  /** Eviction has passed a subscription's cursor; it ends next. */
  overtaken(subscription: Subscription, at: OvertakenAt): void;
  /** A subscription is over and was taken off its stream. */
  ended(subscription: Subscription): void;
  /** The stream behind the handle is no more, and nobody reads it here any longer. */
  gone(stream: EdgeStream): void;
}

export class FanOut {
  readonly #reader: RingReader;
  readonly #counters: Counters;
  readonly #events: FanOutEvents;
  readonly #writeBytesMax: number;
  readonly #replay: Replay | null;
  readonly #catchUp: CatchUp;
  readonly #runs: KeptRun[];
  #nextRun = 0;
  /** The run that was given last. */
  #recent: KeptRun;
  /** What was written since the counters were last brought up to date: they are shared, and dear to touch each time. */
  #deliveries = 0;
  #deliveredBytes = 0;
  #turnWritesLeft = 0;
  #turnBytesLeft = 0;
  #tick = 0;
  /** What the last read that gave no run said. */
  #found = READ_OK;

  constructor(options: {
    reader: RingReader;
    counters: Counters;
    events: FanOutEvents;
    writeBytesMax: number;
    /** Null without a durable log. */
    replay: Replay | null;
    catchUp: CatchUp;
  }) {
    this.#replay = options.replay;
    this.#catchUp = options.catchUp;
    this.#reader = options.reader;
    this.#counters = options.counters;
    this.#events = options.events;
    this.#writeBytesMax = options.writeBytesMax;
    this.#runs = Array.from({ length: RUNS_MAX }, () => ({
      run: new FrameRun(options.writeBytesMax),
      rendered: new Map(),
      stream: null,
    }));
    this.#recent = this.#runs[0] as KeptRun;
  }

  /** Starts a turn: a fresh budget, and nothing remembered of what the rings held in the last. */
  beginTurn(tick: number): void {
    this.#turnWritesLeft = TURN_WRITES_MAX;
    this.#turnBytesLeft = TURN_BYTES_MAX;
    this.#tick = tick;
    for (const kept of this.#runs) kept.stream = null;
  }

  /** Ends a turn: what it wrote is counted. */
  endTurn(): void {
    this.#counters.add(Counter.deliveries, this.#deliveries);
    this.#counters.add(Counter.deliveredBytes, this.#deliveredBytes);
    this.#deliveries = 0;
    this.#deliveredBytes = 0;
  }

  get turnIsOver(): boolean {
    return this.#turnWritesLeft <= 0 || this.#turnBytesLeft <= 0;
  }

  /**
   * Writes to everybody who is ready, until all have what is committed or the turn is over.
   * @returns true when nobody who is ready is behind.
   */
  drain(stream: EdgeStream): boolean {
    if (this.#reader.look(stream) === READ_GONE) {
      this.#endDeleted(stream);
      return true;
    }
    const committed = this.#reader.committedSeq;
    const closed = this.#reader.closed;
    stream.drainedSeq = committed;
    stream.drainedClosed = closed;
    this.#wakeWaiters(stream, committed, closed);
    this.#found = READ_OK;
    while (!this.#pass(stream, committed, closed)) {
      // Deleted since the look: the next one says so.
      if (this.turnIsOver || this.#found === READ_GONE) return false;
    }
    return true;
  }

  /**
   * Gives a new subscription its first run, if it is behind and the turn has room. One that cannot be read is left to
   * the next turn: the head of the answer is to be on its way before the connection ends.
   */
  begin(stream: EdgeStream, subscription: Subscription): void {
    if (this.turnIsOver || this.#reader.look(stream) === READ_GONE) return;
    if (subscription.cursor === this.#reader.committedSeq) return;
    const shared = this.#runAfter(stream, subscription);
    if (shared !== null) this.#give(subscription, shared);
  }

  /** Tells a reader whose next event is gone, and ends it (contract 4.6, I2). */
  endOvertaken(stream: EdgeStream, subscription: Subscription, at: OvertakenAt): void {
    this.#counters.add(Counter.overtaken, 1);
    this.#counters.add(Counter.evictedUndelivered, Math.max(0, at.lowestSeq - subscription.cursor - 1));
    this.#counters.add(Counter.unavailableEvicted, 1);
    this.#events.overtaken(subscription, at);
    this.#end(stream, subscription);
    if (subscription.tellUnavailable) {
      subscription.sink.end(overtakenEnding(stream.epoch, subscription.cursor, at));
    } else {
      subscription.sink.cut();
    }
  }

  /**
   * Looks at each ready subscription once, from where the last turn stopped, so that a turn that ends early
   * does not starve the later ones (I10).
   * @returns true when none of them is behind.
   */
  #pass(stream: EdgeStream, committed: number, closed: boolean): boolean {
    const { ready } = stream;
    let caughtUp = true;
    for (let visits = ready.length; visits > 0 && ready.length > 0; visits--) {
      if (stream.nextIndex >= ready.length) stream.nextIndex = 0;
      const subscription = ready[stream.nextIndex] as Subscription;
      if (subscription.cursor < committed) {
        if (this.turnIsOver) return false;
        if (!this.#advance(stream, subscription)) return false;
      }
      if (closed && subscription.state === 'ready' && subscription.cursor === committed) {
        this.#endClosed(stream, subscription);
      }
      if (subscription.state !== 'ready') {
        // It left the list and another one took its place, which this pass may not visit.
        caughtUp = false;
        continue;
      }
      if (subscription.cursor < committed) caughtUp = false;
      stream.nextIndex++;
    }
    return caughtUp;
  }

  /**
   * One run to one subscription.
   * @returns false when the stream is gone; the next turn finds that out and ends everybody.
   */
  #advance(stream: EdgeStream, subscription: Subscription): boolean {
    const shared = this.#runAfter(stream, subscription);
    if (shared === null) return this.#endUnreadable(stream, subscription);
    this.#give(subscription, shared);
    return true;
  }

  #give(subscription: Subscription, shared: SharedRun): void {
    const { run } = shared;
    assert(
      run.firstSeq === subscription.cursor + 1,
      'I1: the seqs written on one connection are consecutive',
    );
    subscription.cursor = run.lastSeq;
    const { rendering } = subscription;
    const { frames, count } =
      rendering === null ? run : rendered(shared, rendering, subscription.stream.epoch);
    this.#turnWritesLeft--;
    this.#turnBytesLeft -= frames.length;
    if (frames.length === 0) {
      subscription.delivered = run.lastSeq;
      return;
    }
    subscription.writtenAtTick = this.#tick;
    const taken = subscription.sink.write(frames);
    this.#deliveries += count;
    this.#deliveredBytes += frames.length;
    if (subscription.state !== 'ready') return; // The write found the connection dead.
    if (rendering === null || !rendering.filters) subscription.announced = run.lastSeq;
    if (taken) {
      subscription.delivered = run.lastSeq;
    } else {
      this.#counters.add(Counter.stalls, 1);
      subscription.stream.move(subscription, 'stalled');
    }
  }

  /** The frames after a reader's cursor, read once a turn; null when the ring cannot give them. */
  #runAfter(stream: EdgeStream, subscription: Subscription): SharedRun | null {
    const afterSeq = subscription.cursor;
    // Mostly everybody stands where the one before does.
    const recent = this.#recent;
    if (recent.stream === stream && recent.run.firstSeq === afterSeq + 1) return recent;
    for (const kept of this.#runs) {
      if (kept.stream === stream && kept.run.firstSeq === afterSeq + 1) return this.#remember(kept);
    }
    const kept = this.#runs[this.#nextRun] as KeptRun;
    this.#nextRun = (this.#nextRun + 1) % RUNS_MAX;
    kept.stream = null;
    this.#found = this.#reader.read(stream, afterSeq, this.#writeBytesMax, kept.run);
    if (this.#found === READ_OVERTAKEN && this.#reader.lowestSeq <= afterSeq + 1) {
      return this.#replayedAfter(stream, subscription);
    }
    if (this.#found !== READ_OK) return null;
    if (!startsWithId(kept.run.frames, stream.epoch, afterSeq + 1)) {
      this.#found = READ_TORN;
      return null;
    }
    kept.stream = stream;
    kept.rendered.clear();
    return this.#remember(kept);
  }

  #remember(kept: KeptRun): KeptRun {
    this.#recent = kept;
    return kept;
  }

  /** The frames after a cursor that is below the ring, from the durable log. */
  #replayedAfter(stream: EdgeStream, subscription: Subscription): SharedRun | null {
    const afterSeq = subscription.cursor;
    this.#catchUp.isBehind(subscription);
    const replayed = (this.#replay as Replay).after(stream, afterSeq);
    if (typeof replayed === 'string') {
      this.#found =
        replayed === 'waiting' ? READ_WAITING : replayed === 'failed' ? READ_FAILED : READ_OVERTAKEN;
      return null;
    }
    if (!startsWithId(replayed.run.frames, stream.epoch, afterSeq + 1)) {
      this.#found = READ_TORN;
      return null;
    }
    this.#counters.add(Counter.replayedBytes, replayed.run.frames.length);
    if (replayed.run.lastSeq + 1 >= this.#reader.floorSeq) this.#catchUp.isBack(subscription);
    return replayed;
  }

  /** After a run could not be read: true when that concerned this subscription alone, which has ended. */
  #endUnreadable(stream: EdgeStream, subscription: Subscription): boolean {
    assert(this.#found !== READ_CAUGHT_UP, 'I9: committed never goes back');
    if (this.#found === READ_GONE) return false;
    if (this.#found === READ_WAITING) {
      stream.move(subscription, 'waiting');
      return true;
    }
    if (this.#found === READ_OVERTAKEN) {
      this.endOvertaken(stream, subscription, this.#reader);
      return true;
    }
    // Cut off rather than given something else (I2); the metric must stay 0.
    if (this.#found === READ_TORN) this.#counters.add(Counter.seamViolations, 1);
    this.#end(stream, subscription);
    subscription.sink.cut();
    return true;
  }

  #endClosed(stream: EdgeStream, subscription: Subscription): void {
    this.#end(stream, subscription);
    subscription.sink.end({ kind: 'closed', cursor: formatCursor(stream.epoch, subscription.cursor) });
  }

  #endDeleted(stream: EdgeStream): void {
    for (const list of [stream.ready, stream.stalled, stream.waiting]) {
      while (list.length > 0) {
        const subscription = list[list.length - 1] as Subscription;
        this.#end(stream, subscription);
        subscription.sink.end({ kind: 'deleted', cursor: formatCursor(stream.epoch, subscription.cursor) });
      }
    }
    for (const waiter of [...stream.waiters]) waiter.wake(null);
    this.#events.gone(stream);
  }

  #end(stream: EdgeStream, subscription: Subscription): void {
    stream.move(subscription, 'ended');
    this.#events.ended(subscription);
  }

  #wakeWaiters(stream: EdgeStream, committed: number, closed: boolean): void {
    if (stream.waiters.size === 0) return;
    for (const waiter of [...stream.waiters]) {
      if (closed || committed > waiter.afterSeq) waiter.wake(committed);
    }
  }
}

/** Whether a run begins with `id: <epoch>.<seq>\n`. Checked once a run, not once a write. */
function startsWithId(frames: Uint8Array, epoch: string, seq: number): boolean {
  const expected = `id: ${formatCursor(epoch, seq)}\n`;
  for (let i = 0; i < expected.length; i++) {
    if (frames[i] !== expected.charCodeAt(i)) return false;
  }
  return true;
}

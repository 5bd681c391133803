/**
 * How the durable log is doing: written by the log thread, read by edges before they append and by whoever renders
 * metrics.
 *
 *   offset size type field            access
 *        0    4 i32  fault            atomic; LOG_HEALTHY, LOG_FULL, LOG_FAILED
 *        8  8*n f64[] counters        plain, single writer: the log thread; by LogCounter
 */

export const LOG_HEALTHY = 0;
/** No space is left on the medium. */
export const LOG_FULL = 1;
/** The medium failed otherwise. */
export const LOG_FAILED = 2;

/** Index of each counter. Gauges are marked. */
export const LogCounter = {
  commits: 0,
  committedEvents: 1,
  committedBytes: 2,
  failedCommits: 3,
  /** Gauge: bytes that the log occupies. */
  sizeBytes: 4,
  commitSecondsSum: 5,
  /** Gauge: bytes of frames from the floors of all streams on. */
  keptBytes: 6,
  /** Bytes of frames that went for the limit of the log as a whole. */
  limitTrimmedBytes: 7,
  /** Gauge: bytes that the log may occupy; infinite where nothing limits it, or nobody says. */
  capacityBytes: 8,
  /** Events that a log which brokers share should have had, and had not. */
  lostEvents: 9,
  /** Streams that began anew because a log which brokers share has lost their newest events. */
  renewedStreams: 10,
  /** Start of the buckets of commit durations, one more than there are bounds. */
  commitSecondsBuckets: 11,
} as const;

/** Upper bounds of the commit durations, seconds. */
export const COMMIT_SECONDS_BOUNDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5,
] as const;

const COUNTERS_OFFSET = 8;
const COUNTERS_LENGTH = 32;

export function createLogStatus(): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(COUNTERS_OFFSET + 8 * COUNTERS_LENGTH);
  new LogStatus(buffer).set(LogCounter.capacityBytes, Number.POSITIVE_INFINITY);
  return buffer;
}

export class LogStatus {
  readonly #fault: Int32Array;
  readonly #counters: Float64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#fault = new Int32Array(buffer, 0, 1);
    this.#counters = new Float64Array(buffer, COUNTERS_OFFSET, COUNTERS_LENGTH);
  }

  get fault(): number {
    return Atomics.load(this.#fault, 0);
  }

  set fault(fault: number) {
    Atomics.store(this.#fault, 0, fault);
  }

  add(counter: number, amount: number): void {
    this.#counters[counter] = (this.#counters[counter] as number) + amount;
  }

  set(counter: number, value: number): void {
    this.#counters[counter] = value;
  }

  get(counter: number): number {
    return this.#counters[counter] as number;
  }

  /** Commits by duration, as the buckets of a histogram, and the sum of durations. */
  observedCommits(): { buckets: number[]; sum: number } {
    const start = LogCounter.commitSecondsBuckets;
    const buckets = Array.from(this.#counters.subarray(start, start + COMMIT_SECONDS_BOUNDS.length + 1));
    return { buckets, sum: this.get(LogCounter.commitSecondsSum) };
  }

  observeCommit(seconds: number): void {
    let bucket = 0;
    while (bucket < COMMIT_SECONDS_BOUNDS.length && seconds > (COMMIT_SECONDS_BOUNDS[bucket] as number))
      bucket++;
    this.add(LogCounter.commits, 1);
    this.add(LogCounter.commitSecondsSum, seconds);
    this.add(LogCounter.commitSecondsBuckets + bucket, 1);
  }
}

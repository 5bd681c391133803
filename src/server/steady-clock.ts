/**
 * The broker's time: Unix time when it started, and from then on what a clock that nobody sets has counted. When somebody
 * sets the clock of the machine, by a day or by a year, no event gets older or younger by that.
 */

/** Unix time less what the machine's steady clock showed at that moment, milliseconds. The same for all threads. */
export type ClockOrigin = number;

export function clockOrigin(): ClockOrigin {
  return Date.now() - machineMs();
}

/** Milliseconds, whole ones; never goes back, and is the same on all threads that were given the same origin. */
export class SteadyClock {
  /** What this thread's own count begins with. */
  #startMs: number;

  constructor(origin: ClockOrigin) {
    this.#startMs = origin + machineMs() - performance.now();
  }

  readonly now = (): number => Math.floor(this.#startMs + performance.now());

  /**
   * Goes on from a moment of before that lies ahead: the machine's clock was set back in between. Only what happens
   * afterwards is on that time, on this thread alone.
   */
  catchUp(ms: number): void {
    this.#startMs += Math.max(0, ms - this.now());
  }
}

/** One count for all threads, which each thread's `performance.now()` is not. */
function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

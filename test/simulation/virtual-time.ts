import type { Prng } from '../support/prng.js';
import type { Schedule, Task } from './schedule.js';

/** What `setTimeout` gives back: something to cancel, which keeps nothing alive. */
interface Timer {
  task: Task | null;
  ref(): Timer;
  unref(): Timer;
}

type Callback = (...args: unknown[]) => void;

/**
 * Puts the clock, the timers and the chance of the simulation in the place of the process's own. The broker is handed
 * most of them, but not all: a publisher's patience is a `setTimeout` in its answer. What is handed in and what is
 * global are then one clock, and nothing that the broker may come to use escapes the seed.
 * @returns puts everything back.
 */
export function installVirtualTime(schedule: Schedule, prng: Prng): () => void {
  const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate } = globalThis;
  const { now } = Date;
  const { random } = Math;
  const monotonic = performance.now;
  const startMs = schedule.nowMs;

  const later = (delayMs: number, run: Callback, args: unknown[], repeats: boolean): Timer => {
    const { thread } = schedule;
    const timer: Timer = { task: null, ref: () => timer, unref: () => timer };
    const arm = (): void => {
      timer.task = schedule.after(thread, delayMs, () => {
        if (repeats) arm();
        run(...args);
      });
    };
    arm();
    return timer;
  };
  const cancel = (timer: Timer | undefined): void => {
    if (timer?.task) timer.task.cancelled = true;
  };
  Object.assign(globalThis, {
    setTimeout: (run: Callback, ms = 1, ...args: unknown[]) => later(Math.max(1, ms), run, args, false),
    setInterval: (run: Callback, ms = 1, ...args: unknown[]) => later(Math.max(1, ms), run, args, true),
    setImmediate: (run: Callback, ...args: unknown[]) => later(0, run, args, false),
    clearTimeout: cancel,
    clearInterval: cancel,
    clearImmediate: cancel,
  });
  Date.now = () => Math.floor(schedule.nowMs);
  Math.random = () => prng.below(2 ** 30) / 2 ** 30;
  performance.now = () => schedule.nowMs - startMs;

  return () => {
    const timers = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate };
    Object.assign(globalThis, timers);
    Date.now = now;
    Math.random = random;
    performance.now = monotonic;
  };
}

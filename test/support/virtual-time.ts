/**
 * Time that passes only when all that could be done is done. What runs in it comes out the same each time that it is run,
 * however fast the machine is, and takes no longer than its work.
 */

import { syncBuiltinESMExports } from 'node:module';
import promised from 'node:timers/promises';

/** Whatever runs for so long goes round in circles. */
const MS_MAX = 600_000;

interface Timer {
  readonly atMs: number;
  readonly act: () => void;
}

type Act<A extends unknown[]> = (...args: A) => void;

/**
 * Runs something that waits for timers, immediates and promises alone, and for nothing outside of this process. What it leaves
 * under way at its end does not go on.
 */
export async function inVirtualTime<T>(run: () => Promise<T>): Promise<T> {
  const { setTimeout, clearTimeout, setImmediate } = globalThis;
  const { setTimeout: sleep } = promised;
  const { now } = performance;
  let nowMs = 0;
  const immediates: (() => void)[] = [];
  const timers = new Set<Timer>();

  const virtualTimeout = <A extends unknown[]>(act: Act<A>, ms = 0, ...args: A): Timer => {
    const timer = { atMs: nowMs + Math.max(1, ms), act: () => act(...args) };
    timers.add(timer);
    return timer;
  };
  const virtual = {
    setTimeout: virtualTimeout,
    clearTimeout: (timer: Timer) => timers.delete(timer),
    setImmediate: <A extends unknown[]>(act: Act<A>, ...args: A) => immediates.push(() => act(...args)),
  };
  const takeNext = (): (() => void) | undefined => {
    const immediate = immediates.shift();
    if (immediate !== undefined) return immediate;
    // Of those of one moment, the one that was set first.
    let next: Timer | undefined;
    for (const timer of timers) if (next === undefined || timer.atMs < next.atMs) next = timer;
    if (next === undefined) return undefined;
    timers.delete(next);
    nowMs = Math.max(nowMs, next.atMs);
    return next.act;
  };

  Object.assign(globalThis, virtual);
  promised.setTimeout = ((ms: number, value: unknown) =>
    new Promise<unknown>((resolve) => virtualTimeout(resolve, ms, value))) as typeof sleep;
  performance.now = () => nowMs;
  syncBuiltinESMExports();
  try {
    let isOver = false;
    const over = run().finally(() => {
      isOver = true;
    });
    over.catch(() => undefined);
    for (;;) {
      // All promises go on before the next is done.
      await new Promise((resolve) => setImmediate(resolve));
      if (isOver) return await over;
      const next = takeNext();
      if (next === undefined) throw new Error('nothing is left to be done, and it is not over');
      if (nowMs > MS_MAX) throw new Error(`it is not over after ${MS_MAX} ms`);
      next();
    }
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
    promised.setTimeout = sleep;
    performance.now = now;
    syncBuiltinESMExports();
  }
}

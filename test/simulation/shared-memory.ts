import assert from 'node:assert/strict';
import type { Prng } from '../support/prng.js';
import type { Schedule, Thread } from './schedule.js';

/** A word of shared memory. */
interface Word {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
}

interface Sleeper extends Word {
  readonly thread: Thread;
  readonly wake: (outcome: string) => void;
}

const atomics = globalThis.Atomics;
const setBytes = Uint8Array.prototype.set;

/** How often something happens in the midst of a copy, where anything happens within steps. */
const COPY_INTERRUPT_CHANCE = 0.1;
const PAUSE_MS_MAX = 20;
/** The longest that a thread is off its processor while it copies. */
const COPY_PAUSE_MS_MAX = 200;

export interface SharedMemoryOptions {
  readonly schedule: Schedule;
  readonly prng: Prng;
  /** One access in so many is preceded by a step of another thread; 0: none is. */
  readonly accessesPerInterrupt: number;
  /** How long a notification may take to arrive, milliseconds. */
  readonly wakeMsMax: number;
}

/**
 * Stands between the broker and its shared memory: at an atomic access, and in the midst of a copy out of a ring, other
 * threads may act, as the seed draws. They do so where the one that is stopped holds no lock, for whoever wants that
 * lock could not go on. So of two threads one may act, any number of times, within a step of the other; that both are
 * in the midst of a step and go on by turns is not among the orders that are drawn.
 */
export class SharedMemory {
  readonly #options: SharedMemoryOptions;
  readonly #held: Word[] = [];
  #sleepers: Sleeper[] = [];
  #accessesLeft: number;

  constructor(options: SharedMemoryOptions) {
    this.#options = options;
    this.#accessesLeft = this.#drawAccesses();
  }

  /** @returns puts everything back. */
  install(): () => void {
    const before = () => this.#access();
    const lock = (words: Int32Array, index: number, expected: number, value: number): number => {
      before();
      const found = atomics.compareExchange(words, index, expected, value);
      if (found === 0 && expected === 0 && value === 1) this.#held.push(wordAt(words, index));
      return found;
    };
    const exchange = (words: Int32Array, index: number, value: number): number => {
      before();
      if (value === 0) this.#release(wordAt(words, index));
      return atomics.exchange(words, index, value);
    };
    const stepping = {
      load: (words: Int32Array, index: number) => (before(), atomics.load(words, index)),
      store: (words: Int32Array, index: number, value: number) => (
        before(), atomics.store(words, index, value)
      ),
      add: (words: Int32Array, index: number, value: number) => (before(), atomics.add(words, index, value)),
      sub: (words: Int32Array, index: number, value: number) => (before(), atomics.sub(words, index, value)),
      and: (words: Int32Array, index: number, value: number) => (before(), atomics.and(words, index, value)),
      or: (words: Int32Array, index: number, value: number) => (before(), atomics.or(words, index, value)),
      xor: (words: Int32Array, index: number, value: number) => (before(), atomics.xor(words, index, value)),
      compareExchange: lock,
      exchange,
      wait: () => assert.fail('no thread is stopped while it holds a lock, so none has to wait for one'),
      waitAsync: (words: Int32Array, index: number, value: number) => this.#sleep(words, index, value),
      notify: (words: Int32Array, index: number, count?: number) => this.#notify(words, index, count),
      isLockFree: atomics.isLockFree,
    };
    globalThis.Atomics = stepping as unknown as Atomics;
    const copy = (target: Uint8Array, from: ArrayLike<number>, at: number) => this.#copy(target, from, at);
    Uint8Array.prototype.set = function (this: Uint8Array, from: ArrayLike<number>, at = 0) {
      copy(this, from, at);
    };
    return () => {
      globalThis.Atomics = atomics;
      // It is inherited from what all typed arrays share.
      Reflect.deleteProperty(Uint8Array.prototype, 'set');
    };
  }

  #access(): void {
    if (this.#accessesLeft === 0 || --this.#accessesLeft > 0) return;
    this.#accessesLeft = this.#drawAccesses();
    this.#interrupt(PAUSE_MS_MAX);
  }

  #interrupt(pauseMsMax: number): void {
    if (this.#held.length > 0) return;
    const { schedule, prng } = this.#options;
    // Mostly the others are merely faster; now and then the thread is off its processor.
    const isPaused = pauseMsMax > PAUSE_MS_MAX || prng.chance(0.2);
    schedule.interrupt(isPaused ? prng.below(pauseMsMax) : 0);
  }

  #drawAccesses(): number {
    const { prng, accessesPerInterrupt } = this.#options;
    return accessesPerInterrupt === 0 ? 0 : 1 + prng.below(2 * accessesPerInterrupt);
  }

  /** A reader's copy takes time, in which the ring may be written to. */
  #copy(target: Uint8Array, from: ArrayLike<number>, at: number): void {
    if (from instanceof Uint8Array && from.buffer instanceof SharedArrayBuffer && from.length > 1) {
      const half = from.length >> 1;
      setBytes.call(target, from.subarray(0, half), at);
      if (this.#accessesLeft > 0 && this.#options.prng.chance(COPY_INTERRUPT_CHANCE)) {
        this.#interrupt(COPY_PAUSE_MS_MAX);
      }
      setBytes.call(target, from.subarray(half), at + half);
      return;
    }
    setBytes.call(target, from, at);
  }

  #release(word: Word): void {
    const at = this.#held.findIndex((held) => isSame(held, word));
    if (at >= 0) this.#held.splice(at, 1);
  }

  #sleep(words: Int32Array, index: number, value: number): unknown {
    if (atomics.load(words, index) !== value) return { async: false, value: 'not-equal' };
    const { thread } = this.#options.schedule;
    const woken = new Promise<string>((wake) => {
      this.#sleepers.push({ ...wordAt(words, index), thread, wake });
    });
    return { async: true, value: woken };
  }

  #notify(words: Int32Array, index: number, count = Number.POSITIVE_INFINITY): number {
    const { schedule, prng, wakeMsMax } = this.#options;
    const word = wordAt(words, index);
    let woken = 0;
    this.#sleepers = this.#sleepers.filter((sleeper) => {
      if (woken === count || !isSame(sleeper, word)) return true;
      woken++;
      schedule.after(sleeper.thread, prng.below(wakeMsMax + 1), () => sleeper.wake('ok'));
      return false;
    });
    return woken;
  }
}

function wordAt(words: Int32Array, index: number): Word {
  return { buffer: words.buffer, byteOffset: words.byteOffset + 4 * index };
}

function isSame(a: Word, b: Word): boolean {
  return a.buffer === b.buffer && a.byteOffset === b.byteOffset;
}

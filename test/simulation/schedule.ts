import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Prng } from '../support/prng.js';

/** Something that does one thing at a time: a thread of the broker, or everything outside of it. */
export interface Thread {
  readonly name: string;
  /** False: it died, and nothing that was due on it is done. */
  alive: boolean;
  /** How late it may be with what is due, in milliseconds: a thread that shares its core with others. */
  readonly lateMsMax: number;
  /** Whether its steps may leave promises behind, so that more follows from them. */
  readonly hasPromises: boolean;
  /** Whether it may act in the midst of another thread's step. */
  readonly interrupts: boolean;
}

/** Something that is due on a thread. */
export interface Task {
  readonly thread: Thread;
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** Where the clock stands at first: a date like any other, so that a time is never taken for a duration. */
const START_MS = 1_700_000_000_000;
/** Threads that may lie under one another on the stack, each stopped in the midst of a step by the one above it. */
const INTERRUPTED_MAX = 3;
/** Steps that others make in such a moment, at most. */
const INTERRUPT_STEPS_MAX = 4;
/** The same where time passes. */
const PAUSE_STEPS_MAX = 80;

const realSetImmediate = setImmediate;

/**
 * The one source of order and of time. What is due at the same moment happens in an order that the seed draws, one step
 * at a time; when nothing is due the clock moves on to when something is.
 */
export class Schedule {
  nowMs = START_MS;
  /** Steps made so far, those within other steps among them. */
  steps = 0;
  readonly #prng: Prng;
  readonly #due: Task[] = [];
  /** A heap by time, then by the order in which they were scheduled. */
  readonly #later: Task[] = [];
  readonly #current = new AsyncLocalStorage<Thread>();
  readonly #interrupted: Thread[] = [];
  #ordered = 0;

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  /** The thread whose code runs, in its steps and in what follows from its promises. */
  get thread(): Thread {
    const thread = this.#current.getStore();
    assert.ok(thread !== undefined, 'everything runs on some thread');
    return thread;
  }

  /** Has something done on a thread, not before `delayMs` have passed. */
  after(thread: Thread, delayMs: number, run: () => void): Task {
    const late = thread.lateMsMax === 0 ? 0 : this.#prng.below(thread.lateMsMax + 1);
    const atMs = this.nowMs + Math.max(0, delayMs) + late;
    const task: Task = { thread, atMs, order: this.#ordered++, run, cancelled: false };
    if (atMs <= this.nowMs) this.#due.push(task);
    else pushHeap(this.#later, task);
    return task;
  }

  /** Runs something as a thread at once: for what begins it all. */
  as<R>(thread: Thread, run: () => R): R {
    return this.#current.run(thread, run);
  }

  /**
   * Makes step after step, each with all that follows from it without time passing.
   * @throws when nothing is due any more, now or later, or the steps are more than `stepsMax` in all.
   */
  async runUntil(isDone: () => boolean, stepsMax: number): Promise<void> {
    while (!isDone()) {
      assert.ok(this.steps < stepsMax, `it goes on and on: ${this.steps} steps`);
      const task = this.#next();
      assert.ok(task !== null, 'nothing is due any more');
      this.#run(task);
      // All promises that the step has resolved, and those that these resolve, are done before this comes.
      if (task.thread.hasPromises) await new Promise((resolve) => realSetImmediate(resolve));
    }
  }

  /**
   * Other threads make steps now, in the midst of the one that the caller is in: what is due within `pauseMs`, for which
   * the caller is off its processor. Where it holds no lock this is what may happen at that moment.
   */
  interrupt(pauseMs: number): void {
    if (this.#interrupted.length >= INTERRUPTED_MAX) return;
    this.#interrupted.push(this.thread);
    const endMs = this.nowMs + pauseMs;
    const stepsMax = pauseMs > 0 ? PAUSE_STEPS_MAX : INTERRUPT_STEPS_MAX;
    for (let left = this.#prng.between(1, stepsMax); left > 0; left--) {
      if (!this.#stepOfAnother() && !this.#advance(endMs)) break;
    }
    this.#interrupted.pop();
  }

  #stepOfAnother(): boolean {
    if (this.#due.length === 0) return false;
    const start = this.#prng.below(this.#due.length);
    for (let i = 0; i < this.#due.length; i++) {
      const at = (start + i) % this.#due.length;
      const { thread, cancelled } = this.#due[at] as Task;
      if (cancelled || !thread.alive || !thread.interrupts || this.#interrupted.includes(thread)) continue;
      this.#run(takeAt(this.#due, at));
      return true;
    }
    return false;
  }

  #run(task: Task): void {
    this.steps++;
    this.#current.run(task.thread, task.run);
  }

  #next(): Task | null {
    for (;;) {
      if (this.#due.length === 0 && !this.#advance()) return null;
      const task = takeAt(this.#due, this.#prng.below(this.#due.length));
      if (!task.cancelled && task.thread.alive) return task;
    }
  }

  /** Moves the clock on to what is due next, if that is no later than `untilMs`. */
  #advance(untilMs = Number.POSITIVE_INFINITY): boolean {
    if (this.#later[0] === undefined || this.#later[0].atMs > untilMs) return false;
    const first = popHeap(this.#later) as Task;
    this.nowMs = first.atMs;
    this.#due.push(first);
    while (this.#later[0] !== undefined && this.#later[0].atMs <= this.nowMs) {
      this.#due.push(popHeap(this.#later) as Task);
    }
    return true;
  }
}

function takeAt(tasks: Task[], at: number): Task {
  const task = tasks[at] as Task;
  const last = tasks.pop() as Task;
  if (at < tasks.length) tasks[at] = last;
  return task;
}

function isBefore(a: Task, b: Task): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

function pushHeap(heap: Task[], task: Task): void {
  let at = heap.length;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!isBefore(task, heap[parent] as Task)) break;
    heap[at] = heap[parent] as Task;
    at = parent;
  }
  heap[at] = task;
}

function popHeap(heap: Task[]): Task | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Task, heap[child] as Task)) child++;
    if (!isBefore(heap[child] as Task, last)) break;
    heap[at] = heap[child] as Task;
    at = child;
  }
  heap[at] = last;
  return first;
}

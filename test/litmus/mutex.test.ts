import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rounds } from './budget.js';
import { Crew } from './crew.js';
import type { MutexOrder, MutexReport, MutexWorkerData } from './mutex-worker.js';

const WORKERS = 3;
const TURNS = 50_000;

/** Threads that count under one lock. */
class MutexLitmus {
  readonly #lock = new SharedArrayBuffer(128);
  readonly #guarded = new SharedArrayBuffer(16);
  readonly #crew: Crew<MutexOrder, MutexReport>;

  constructor() {
    const data: MutexWorkerData = { lock: this.#lock, guarded: this.#guarded };
    this.#crew = new Crew(
      new URL('./mutex-worker.js', import.meta.url),
      Array.from({ length: WORKERS }, () => data),
    );
  }

  /** @returns times that somebody saw the counters of another one's turn, and what both counted in the end. */
  async round(locked: boolean): Promise<{ apart: number; counted: number[] }> {
    const counters = new Float64Array(this.#guarded).fill(0);
    this.#crew.orderAll({ turns: TURNS, locked });
    const apart = (await this.#crew.reports('a thread that has counted')).reduce((sum, one) => sum + one, 0);
    return { apart, counted: [...counters] };
  }

  get lockWord(): number {
    return Atomics.load(new Int32Array(this.#lock), 0);
  }

  async end(): Promise<void> {
    await this.#crew.end();
  }
}

test('under the lock nobody sees the half of what another one does, and no turn is lost', async (context) => {
  const litmus = new MutexLitmus();
  const budget = rounds(0.3);
  try {
    while (budget.next()) {
      const { apart, counted } = await litmus.round(true);
      assert.equal(apart, 0);
      assert.deepEqual(counted, [WORKERS * TURNS, WORKERS * TURNS]);
      assert.equal(litmus.lockWord, 0, 'the lock is free in the end');
    }
  } finally {
    await litmus.end();
  }
  context.diagnostic(`${budget.count * WORKERS * TURNS} turns of ${WORKERS} threads`);
});

test('without the lock the same counters come apart, so these can tell', async () => {
  const litmus = new MutexLitmus();
  let caught = false;
  try {
    for (let round = 0; !caught; round++) {
      assert.ok(round < 500, 'it is caught');
      const { apart, counted } = await litmus.round(false);
      caught = apart > 0 || counted[0] !== WORKERS * TURNS;
    }
  } finally {
    await litmus.end();
  }
});

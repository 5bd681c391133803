import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { ANY_HEAD, APPENDED, Appender } from '#gapless/ring/append.js';
import { closeStream, readPositions, removeStream } from '#gapless/ring/lifecycle.js';
import { createRings, Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { openRingStream } from '../unit/ring-open.js';
import { rounds } from './budget.js';
import { Crew } from './crew.js';
import {
  createLedger,
  marksOf,
  type RingOrder,
  type RingReport,
  type RingWorkerData,
  type Role,
  STREAMS,
} from './ring-round.js';

/** Room for the first stream at its first size, and for its second size once the test gives that free. */
const ARENA_BYTES = 16 * 1024;
const HELD_BACK_ORDER = 13;
const DATA_BYTES_MAX = 8192;
const BATCHES = 400;

interface Totals {
  accepted: number;
  discarded: number;
  overtaken: number;
  /** Events of the second stream, which has memory only after the first has grown. */
  second: number;
  /** Rings that gave way to the other stream. */
  reclaimed: number;
}

/** The threads and what they share, with the judge of each round. */
class RingLitmus {
  readonly totals: Totals = { accepted: 0, discarded: 0, overtaken: 0, second: 0, reclaimed: 0 };
  readonly #roles: readonly Role[];
  readonly #crew: Crew<RingOrder, RingReport>;
  readonly #rings: Rings;
  readonly #ledgers = createLedger();
  readonly #seen: readonly SharedArrayBuffer[];
  #round = 0;
  #opened = 0;

  constructor(roles: readonly Role[], { durable = false } = {}) {
    const buffers = createRings({ streamsMax: STREAMS, memoryBytes: ARENA_BYTES, durable });
    const start = new SharedArrayBuffer(4);
    this.#rings = new Rings(buffers);
    this.#roles = roles;
    this.#seen = roles.map(() => createLedger());
    const data = roles.map(
      (role, index): RingWorkerData => ({
        role,
        index,
        workers: roles.length,
        rings: buffers,
        start,
        ledgers: this.#ledgers,
        seen: this.#seen[index] as SharedArrayBuffer,
      }),
    );
    this.#crew = new Crew(new URL('./ring-worker.js', import.meta.url), data);
  }

  /**
   * One round. Halfway through, the first stream gets room to grow, and the second the room that it leaves.
   * @param ending closes the streams when all is appended, or removes them in the midst of it.
   * @returns what a reader or an appender found wrong.
   */
  async round(prng: Prng, ending: 'close' | 'remove'): Promise<string | null> {
    const heldBack = this.#rings.arena.allocate(HELD_BACK_ORDER);
    const streams = [this.#open(0), this.#open(1)];
    for (const ledger of [this.#ledgers, ...this.#seen]) new Int32Array(ledger).fill(0);
    this.#round++;
    this.#crew.orderAll({ round: this.#round, seed: prng.below(2 ** 32), streams, batches: BATCHES });

    await this.#reports('appender', 'an appender that is halfway');
    this.#rings.arena.release(heldBack, HELD_BACK_ORDER);
    const next = ending === 'remove' ? this.#replace(streams) : null;
    const ends = await this.#reports('appender', 'an appender that is through');
    if (next === null) for (const stream of streams) closeStream(this.#rings, stream, 0);
    const reads = await this.#reports('reader', 'a reader that has come to the end');
    const problem = this.#judge([...ends, ...reads], next === null ? streams : null);
    for (const stream of next ?? streams) removeStream(this.#rings, stream);
    assert.equal(this.#rings.arena.usage().usedBytes, 0);
    return problem;
  }

  async end(): Promise<void> {
    await this.#crew.end();
  }

  /** Gives the slots to other streams at once, and has them overwrite the memory that the first ones had. */
  #replace(streams: readonly StreamHandle[]): StreamHandle[] {
    const batch = new FrameBatch(1 << 16);
    const foreign = Buffer.from('foreign '.repeat(100));
    batch.pushText(foreign, 0, foreign.length, null);
    const appender = new Appender(this.#rings);
    // Both before either is replaced: one that still grows could have all of the memory.
    for (const stream of streams) removeStream(this.#rings, stream);
    return streams.map((stream) => {
      const next = this.#open(stream.slot);
      for (let i = 0; i < 20; i++) assert.equal(appender.append(next, batch, 0, ANY_HEAD), APPENDED);
      return next;
    });
  }

  /** The next report of each appender, or of each reader of whatever kind. */
  #reports(who: 'appender' | 'reader', what: string): Promise<RingReport[]> {
    const indexes = this.#roles.flatMap((role, index) =>
      (role === 'appender') === (who === 'appender') ? [index] : [],
    );
    return Promise.all(indexes.map((index) => this.#crew.report(index, what)));
  }

  #open(slot: number): StreamHandle {
    this.#opened++;
    return openRingStream(this.#rings, slot, {
      epoch: `litmus${String(this.#opened).padStart(6, '0')}`,
      dataBytesMax: DATA_BYTES_MAX,
    });
  }

  #judge(reports: readonly RingReport[], streams: readonly StreamHandle[] | null): string | null {
    const events = [0, 0];
    let reclaimed = 0;
    for (const report of reports) {
      if (report.kind === 'half') continue;
      if (report.problem !== null) return report.problem;
      if (report.kind === 'appended') {
        reclaimed += report.reclaimed;
        for (const which of [0, 1])
          events[which] = (events[which] as number) + (report.events[which] as number);
      } else {
        this.totals.accepted += report.accepted;
        this.totals.discarded += report.discarded;
        this.totals.overtaken += report.overtaken;
      }
    }
    this.totals.second += events[1] as number;
    this.totals.reclaimed = reclaimed;
    return this.#judgeLedgers(events, streams);
  }

  /** The seqs are dense and as many as were appended, and every reader saw at each what stands in the ledger. */
  #judgeLedgers(events: readonly number[], streams: readonly StreamHandle[] | null): string | null {
    for (const which of [0, 1]) {
      const marks = marksOf(this.#ledgers, which);
      const head = events[which] as number;
      const hole = marks.indexOf(0, 1) - 1;
      if (hole !== head) return `${head} events were appended, and seqs are dense up to ${hole}`;
      const stream = streams?.[which];
      if (stream !== undefined && readPositions(this.#rings, stream)?.head !== head)
        return 'the head is not the sum';
      for (const seen of this.#seen) {
        const wrong = marksOf(seen, which).findIndex((mark, seq) => mark !== 0 && mark !== marks[seq]);
        if (wrong >= 0) return `I3: a reader saw another event at ${wrong} than was appended there`;
      }
    }
    return null;
  }
}

function report(context: TestContext, litmus: RingLitmus, roundCount: number): void {
  const { accepted, discarded, overtaken, second } = litmus.totals;
  context.diagnostic(
    `${roundCount} rounds, ${accepted} events accepted, ${discarded} copies discarded, ${overtaken} times overtaken`,
  );
  context.diagnostic(`${second} events in memory that another stream had before`);
}

test('I5 every run that a reader accepts is whole, consecutive and what was appended, however fast the ring evicts', async (context) => {
  const prng = seededPrng(context);
  const litmus = new RingLitmus(['appender', 'appender', 'reader', 'reader', 'reader']);
  const budget = rounds(1);
  try {
    while (budget.next()) {
      const ending = budget.count % 2 === 0 ? 'remove' : 'close';
      assert.equal(await litmus.round(prng, ending), null);
    }
  } finally {
    await litmus.end();
  }
  report(context, litmus, budget.count);
  assert.ok(litmus.totals.accepted > 0 && litmus.totals.overtaken > 0);
  assert.ok(litmus.totals.second > 0, 'the second stream has had the memory that the first gave back');
});

test('I5 streams that take each other memory lose no event that is not committed, and their readers see only what was', async (context) => {
  const prng = seededPrng(context);
  const roles: Role[] = ['appender', 'appender', 'committer', 'reader', 'reader'];
  const litmus = new RingLitmus(roles, { durable: true });
  const budget = rounds(1);
  try {
    while (budget.next()) assert.equal(await litmus.round(prng, 'close'), null);
  } finally {
    await litmus.end();
  }
  report(context, litmus, budget.count);
  const { accepted, overtaken, reclaimed } = litmus.totals;
  context.diagnostic(`${reclaimed} rings gave way`);
  assert.ok(accepted > 0 && overtaken > 0 && reclaimed > 0);
});

for (const [mistaken, ending] of [
  ['unconfirmed reader', 'close'],
  ['floor-only reader', 'remove'],
] as const) {
  test(`a planted ${mistaken} is caught by the same judge, so it can tell`, async (context) => {
    const prng = seededPrng(context);
    const litmus = new RingLitmus(['appender', 'appender', mistaken, mistaken, 'reader']);
    let problem: string | null = null;
    let roundCount = 0;
    try {
      for (; problem === null; roundCount++) {
        assert.ok(roundCount < 2000, 'it is caught');
        problem = await litmus.round(prng, ending);
      }
    } finally {
      await litmus.end();
    }
    context.diagnostic(`caught in round ${roundCount}: ${problem}`);
  });
}

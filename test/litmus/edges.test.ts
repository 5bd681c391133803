import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Directory } from '#gapless/broker/directory.js';
import { NO_JOURNAL } from '#gapless/broker/journal.js';
import { Counter, countersOfAll, createCounters } from '#gapless/ring/counters.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { seededPrng } from '../support/prng.js';
import { rounds } from './budget.js';
import { Crew } from './crew.js';
import type { EdgeOrder, EdgeReport, EdgeWorkerData } from './edges-worker.js';

const EDGES = 2;
const STREAMS = 3;

interface Scene {
  readonly retentionEvents: number;
  readonly publishes: number;
  readonly eventsPerPublish: number;
  readonly inStep: boolean;
  readonly uneven: boolean;
  readonly ending: EdgeOrder['ending'];
}

/** Edges on threads of their own, each with publishers and readers, and the coordinator here. */
class EdgesLitmus {
  readonly #scene: Scene;
  readonly #directory: Directory;
  readonly #crew: Crew<EdgeOrder, EdgeReport>;
  readonly #counters = createCounters(EDGES);
  #opened = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
    const buffers = createRings({ streamsMax: STREAMS, memoryBytes: 2 ** 25 });
    const rings = new Rings(buffers);
    const wakes = createWakes(EDGES, STREAMS);
    this.#directory = new Directory({
      rings,
      wakes: new Wakes(wakes, rings),
      defaults: {
        retention: { events: scene.retentionEvents, bytes: 0, ageMs: 0 },
        overflow: 'evict',
        ttlMs: 0,
      },
      streamBytesMax: 2 ** 22,
      publishBytesMax: 2 ** 20,
      autoCreate: true,
      journal: NO_JOURNAL,
      removed: () => undefined,
      ringBytes: 0,
      now: () => 0,
      // Every epoch must be another one; they need not be hard to guess.
      randomBytes: (count) => Uint8Array.from({ length: count }, (_, i) => this.#opened >> (5 * i)),
    });
    const data = Array.from(
      { length: EDGES },
      (_, edge): EdgeWorkerData => ({ edge, edges: EDGES, rings: buffers, wakes, counters: this.#counters }),
    );
    this.#crew = new Crew(new URL('./edges-worker.js', import.meta.url), data);
  }

  /** One life of all streams. @returns how many events the readers were written. */
  async round(seed: number): Promise<number> {
    const names = Array.from({ length: STREAMS }, (_, i) => `stream-${i}`);
    const refs = names.map((name) => {
      this.#opened++;
      const ref = this.#directory.resolve(name, true);
      assert.ok(ref !== null);
      return ref;
    });
    const read = new SharedArrayBuffer(4 * EDGES * STREAMS);
    this.#crew.orderAll({ seed, refs, read, joined: new SharedArrayBuffer(4), ...this.#scene });
    await this.#crew.reports('an edge that has published half');
    // In the midst of it, for only then can a deletion fall into an edge's turn.
    if (this.#scene.ending === 'stream_deleted') for (const name of names) this.#directory.remove(name);
    const published = await this.#crew.reports('an edge that has published');
    if (this.#scene.ending === 'stream_closed') for (const name of names) this.#directory.close(name);
    const ended = await this.#crew.reports('an edge whose readers have all ended');
    if (this.#scene.ending === 'stream_closed') for (const name of names) this.#directory.remove(name);
    for (const { problem } of [...published, ...ended]) assert.equal(problem, null);
    return ended.reduce((sum, { events }) => sum + events, 0);
  }

  assertClean(): void {
    for (const counters of countersOfAll(this.#counters)) {
      assert.equal(counters.get(Counter.seamViolations), 0);
      assert.equal(counters.get(Counter.overtaken), 0);
      assert.equal(counters.get(Counter.subscribers), 0);
    }
  }

  async end(): Promise<void> {
    await this.#crew.end();
  }
}

async function play(context: TestContext, scene: Scene): Promise<void> {
  const prng = seededPrng(context);
  const litmus = new EdgesLitmus(scene);
  const budget = rounds(0.3);
  let events = 0;
  try {
    while (budget.next()) events += await litmus.round(prng.below(2 ** 31));
    litmus.assertClean();
  } finally {
    await litmus.end();
  }
  context.diagnostic(`${budget.count} rounds, ${events} events delivered`);
}

test('I1 readers on two edges get all that both publish, whole and in order, whoever stalls or comes late', (context) =>
  play(context, {
    retentionEvents: 0,
    publishes: 300,
    eventsPerPublish: 5,
    inStep: false,
    uneven: true,
    ending: 'stream_closed',
  }));

test('2.3 a deletion in the midst of everything ends every reader on every edge', (context) =>
  play(context, {
    retentionEvents: 0,
    publishes: 60,
    eventsPerPublish: 5,
    inStep: false,
    uneven: true,
    ending: 'stream_deleted',
  }));

test('2.1 readers that keep up are never cut off, however little the stream keeps', (context) =>
  play(context, {
    retentionEvents: 3,
    publishes: 100,
    eventsPerPublish: 50,
    inStep: true,
    uneven: false,
    ending: 'stream_closed',
  }));

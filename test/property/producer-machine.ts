import assert from 'node:assert/strict';
import fc from 'fast-check';
import { KEY, PRODUCER, type RecordKind } from '#gapless/core/producer-record.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import * as append from '#gapless/ring/append.js';
import type { ProducerClaim } from '#gapless/ring/claim-judge.js';
import { readPositions, removeStream } from '#gapless/ring/lifecycle.js';
import { changesSince, forgetProducers, hasTables, restoreProducers } from '#gapless/ring/producer-memory.js';
import { createRings, Rings, type StreamHandle } from '#gapless/ring/rings.js';
import { openRingStream } from '../unit/ring-open.js';

/** How many publishes back a producer's are remembered with their place; a key publishes once. */
const WINDOW = 8;
const TTL_MS: readonly [number, number] = [1000, 300];
const START_MS = 1_750_000_000_000;
const MEMORY_BYTES = 2 ** 20;

export type ProducerStep =
  | {
      readonly do: 'publish';
      readonly who: number;
      readonly epoch: number;
      readonly back: number;
      readonly events: number;
    }
  | { readonly do: 'key'; readonly who: number; readonly events: number }
  | { readonly do: 'plain'; readonly events: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'forget' | 'restore' };

const who = fc.nat(40);
const events = fc.integer({ min: 1, max: 3 });

export const producerSteps: fc.Arbitrary<ProducerStep[]> = fc.array(
  fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({
        do: fc.constant('publish' as const),
        who: fc.oneof(fc.nat(2), who),
        // Beside the producer's newest epoch, and behind its next seq.
        epoch: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: -1, max: 2 })),
        back: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: -2, max: 12 })),
        events,
      }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('key' as const), who, events }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('plain' as const), events }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(600) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('forget' as const, 'restore' as const) }) },
  ),
  { minLength: 1, maxLength: 200 },
);

/** What is known of one producer, the plain way: everything that it ever appended in its epoch. */
interface Known {
  epoch: number;
  /** By seq, first and last of the publish in the stream. */
  places: { firstSeq: number; lastSeq: number }[];
  usedAtMs: number;
}

/** A stream whose publishers say who they are, next to a list of what each of them published. */
export class ProducerMachine {
  readonly #countMax: readonly [number, number];
  readonly #known: readonly [Map<number, Known>, Map<number, Known>] = [new Map(), new Map()];
  readonly #batch = new FrameBatch(1 << 16);
  #rings: Rings;
  #stream: StreamHandle;
  #appender: append.Appender;
  #nowMs = START_MS;
  #head = 0;

  constructor(countMax: readonly [number, number]) {
    this.#countMax = countMax;
    this.#rings = this.#newRings();
    this.#stream = this.#open();
    this.#appender = new append.Appender(this.#rings);
  }

  take(step: ProducerStep): void {
    switch (step.do) {
      case 'publish': {
        const known = this.#alive(PRODUCER, step.who);
        const epoch = Math.max(0, (known?.epoch ?? 5) + step.epoch);
        const next = known?.epoch === epoch ? known.places.length : 0;
        return this.#publish(PRODUCER, step.who, { epoch, seq: Math.max(0, next - step.back) }, step.events);
      }
      case 'key':
        return this.#publish(KEY, step.who, { epoch: 0, seq: 0 }, step.events);
      case 'plain':
        assert.equal(this.#append(step.events, null), append.APPENDED);
        this.#head += step.events;
        return this.#assertHead();
      case 'pass':
        this.#nowMs += step.ms;
        return;
      case 'forget':
        return this.#forget();
      case 'restore':
        return this.#restore();
    }
  }

  /** Everything goes back to the arena with the stream. */
  end(): void {
    removeStream(this.#rings, this.#stream);
    assert.ok(!hasTables(this.#rings, 0));
    assert.equal(this.#rings.arena.tableBytes, 0);
    assert.equal(this.#rings.arena.usage().usedBytes, 0);
  }

  #publish(kind: RecordKind, of: number, at: { epoch: number; seq: number }, count: number): void {
    const known = this.#alive(kind, of);
    const claim: ProducerClaim = { kind, digest: digestOf(kind, of), ...at };
    const outcome = this.#append(count, claim);
    const { firstSeq, lastSeq } = this.#appender;
    const places = known?.epoch === at.epoch ? known.places : [];
    const place = places[at.seq];
    const next = { firstSeq: this.#head + 1, lastSeq: this.#head + count };
    if (known !== undefined && at.epoch < known.epoch) {
      assert.equal(outcome, append.APPEND_FENCED);
      assert.equal(this.#appender.newestEpoch, known.epoch);
    } else if (place !== undefined) {
      const isRemembered = at.seq >= places.length - (kind === KEY ? 1 : WINDOW);
      assert.equal(outcome, isRemembered ? append.APPEND_DUPLICATE : append.APPEND_FORGOTTEN);
      if (isRemembered)
        assert.deepEqual({ firstSeq, lastSeq }, place, 'a repeat is told what was told at first');
    } else if (at.seq > places.length) {
      assert.equal(outcome, append.APPEND_PRODUCER_GAP);
      assert.equal(this.#appender.expectedSeq, places.length);
    } else if (outcome === append.APPEND_TOO_MANY_PRODUCERS) {
      assert.ok(known === undefined, 'who is remembered is never refused for the others');
      assert.equal(this.#aliveCount(kind), this.#countMax[kind], 'there are as many as there may be');
    } else {
      assert.equal(outcome, append.APPENDED);
      assert.deepEqual({ firstSeq, lastSeq }, next);
      this.#head += count;
      this.#known[kind].set(of, { epoch: at.epoch, places: [...places, next], usedAtMs: this.#nowMs });
    }
    this.#assertHead();
  }

  #append(count: number, claim: ProducerClaim | null): number {
    this.#batch.reset();
    for (let i = 0; i < count; i++) this.#batch.pushText(Buffer.from('x'), 0, 1, null);
    return this.#appender.append(this.#stream, this.#batch, this.#nowMs, append.ANY_HEAD, claim);
  }

  #forget(): void {
    for (const kind of [PRODUCER, KEY] as const) {
      const bounds = { nowMs: this.#nowMs, countMax: 1000 };
      const forgotten = forgetProducers(this.#rings, this.#stream, kind, bounds);
      for (let at = 0; at < forgotten.length; at += 16) {
        const of = forgotten[at] as number;
        assert.equal(this.#alive(kind, of), undefined, 'nobody is forgotten before its time');
        this.#known[kind].delete(of);
      }
    }
  }

  /** Other memory, with what would be in the log: the same from there on. */
  #restore(): void {
    const changes = changesSince(this.#rings, this.#stream, 0);
    assert.ok(changes !== null);
    assert.equal(changes.headSeq, this.#head);
    const [producers, keys] = changes.records;
    this.#rings = this.#newRings();
    this.#stream = this.#open();
    this.#appender = new append.Appender(this.#rings);
    assert.ok(restoreProducers(this.#rings, this.#stream, { producers, keys }));
  }

  #newRings(): Rings {
    const producers = { countMax: this.#countMax, ttlMs: TTL_MS, bytesMax: MEMORY_BYTES };
    return new Rings(createRings({ streamsMax: 1, memoryBytes: MEMORY_BYTES, producers }));
  }

  #open(): StreamHandle {
    const options = { epoch: 'abcdefgh01', events: 0, bytes: 0, dataBytesMax: 2 ** 17, head: this.#head };
    return openRingStream(this.#rings, 0, options);
  }

  #alive(kind: RecordKind, of: number): Known | undefined {
    const known = this.#known[kind].get(of);
    return known !== undefined && known.usedAtMs + TTL_MS[kind] > this.#nowMs ? known : undefined;
  }

  #aliveCount(kind: RecordKind): number {
    return [...this.#known[kind].keys()].filter((of) => this.#alive(kind, of) !== undefined).length;
  }

  #assertHead(): void {
    assert.equal(
      readPositions(this.#rings, this.#stream)?.head,
      this.#head,
      'what is refused changes nothing',
    );
  }
}

/** Few first words, so that many share a chain. */
function digestOf(kind: RecordKind, of: number): Int32Array {
  return Int32Array.of(of | ((of % 3) << 8), kind, of, 7);
}

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { LmdbReader } from '#gapless/storage/lmdb/lmdb-reader.js';
import {
  after,
  configOf,
  EPOCH,
  frameOf,
  type LogStage,
  readAll,
  runOf,
  settleDeletes,
} from '../unit/storage-stage.js';

/** One step. `stream` and `at` choose among what there is; sizes are of the data of events. */
export type Step =
  | { readonly do: 'create'; readonly events: number; readonly bytes: number; readonly ageMs: number }
  | { readonly do: 'append'; readonly stream: number; readonly sizes: readonly number[] }
  | { readonly do: 'close' | 'remove' | 'retain'; readonly stream: number }
  | { readonly do: 'trim' | 'read'; readonly stream: number; readonly at: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'shrink'; readonly share: number }
  | { readonly do: 'commit' | 'reopen' | 'settle' };

/** More than any append of {@link steps} takes. */
const LAST_BLOCK_BYTES_MAX = 3_100_000;

const which = fc.nat(1000);
const sizes = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.nat(300), { minLength: 1, maxLength: 8 }) },
  { weight: 3, arbitrary: fc.array(fc.nat(20_000), { minLength: 1, maxLength: 30 }) },
  { weight: 1, arbitrary: fc.array(fc.nat(1_500_000), { minLength: 1, maxLength: 2 }) },
);
const limit = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 50 }));

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('create' as const),
        events: limit,
        bytes: limit.map((n) => n * 1000),
        ageMs: limit.map((n) => n * 1000),
      }),
    },
    { weight: 12, arbitrary: fc.record({ do: fc.constant('append' as const), stream: which, sizes }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('retain' as const), stream: which }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constantFrom('close' as const, 'remove' as const), stream: which }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('trim' as const, 'read' as const, 'read' as const),
        stream: which,
        at: which,
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(20_000) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('shrink' as const), share: fc.nat(10) }) },
    { weight: 12, arbitrary: fc.record({ do: fc.constant('commit' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('reopen' as const, 'settle' as const) }) },
  ),
  { minLength: 10, maxLength: 120 },
);

interface ModelEvent {
  readonly size: number;
  readonly atMs: number;
}

interface ModelStream {
  readonly id: number;
  readonly retention: { events: number; bytes: number; ageMs: number };
  readonly events: ModelEvent[];
  floor: number;
  closed: boolean;
}

/** A log next to what it has to be: lists of events. Both are asked after every step that could tell them apart. */
export class LogMachine {
  #stage: LogStage;
  #nowMs = 1_750_000_000_000;
  #streams: ModelStream[] = [];
  /** As of the last commit. */
  #committed: ModelStream[] = [];

  constructor(stage: LogStage) {
    this.#stage = stage;
  }

  async dispose(): Promise<void> {
    await this.#stage.dispose();
  }

  async take(step: Step): Promise<void> {
    const { log } = this.#stage;
    switch (step.do) {
      case 'create':
        return this.#create(step);
      case 'pass':
        this.#nowMs += step.ms;
        return;
      case 'shrink':
        return this.#shrink(step.share);
      case 'commit':
        await log.commit();
        this.#committed = this.#streams.map(copyOf);
        return;
      case 'settle':
        await log.commit();
        this.#committed = this.#streams.map(copyOf);
        return settleDeletes(log);
      case 'reopen':
        return this.#reopen();
      default:
        return this.#takeOn(step);
    }
  }

  /** Everything that is committed, read from beginning to end. */
  compareAll(bytesMax: number): void {
    for (const stream of this.#committed) {
      const living = this.#streams.find(({ id }) => id === stream.id);
      if (living === undefined) continue;
      const from = Math.max(stream.floor, living.floor);
      const { frames, lastSeq } = readAll(this.#stage, stream.id, from - 1, bytesMax);
      assert.equal(lastSeq, Math.max(stream.events.length, from - 1));
      const expected = stream.events
        .slice(from - 1)
        .map(({ size }, at) => frameOf(stream.id, from + at, size));
      assert.ok(frames.equals(Buffer.concat(expected)), 'I3: the content of an event never changes');
    }
  }

  #create({ events, bytes, ageMs }: Extract<Step, { do: 'create' }>): void {
    const { log } = this.#stage;
    const id = log.nextId();
    const retention = { events, bytes, ageMs };
    assert.ok(!this.#committed.some((stream) => stream.id === id), 'I3: an id is given once');
    log.create({ id, name: `stream-${id}`, epoch: EPOCH, config: configOf(retention) });
    this.#streams.push({ id, retention, events: [], floor: 1, closed: false });
  }

  #takeOn(step: Extract<Step, { stream: number }>): void {
    const stream = this.#streams[step.stream % this.#streams.length];
    if (stream === undefined) return;
    const { log } = this.#stage;
    const { id, events } = stream;
    switch (step.do) {
      case 'append':
        if (stream.closed) return;
        log.append(id, runOf(id, events.length + 1, step.sizes), this.#nowMs);
        events.push(...step.sizes.map((size) => ({ size, atMs: this.#nowMs })));
        return;
      case 'close':
        log.close(id);
        stream.closed = true;
        return;
      case 'remove':
        log.remove(id);
        this.#streams = this.#streams.filter((other) => other !== stream);
        return;
      case 'trim':
        log.trim(id, step.at % (events.length + 2));
        stream.floor = Math.max(stream.floor, Math.min(events.length + 1, step.at % (events.length + 2)));
        assert.equal(log.floor(id), stream.floor);
        return;
      case 'retain':
        return this.#retain(stream);
      case 'read':
        return this.#read(stream, step.at);
    }
  }

  /** The limits hold for what is committed: it is all that a reader could miss. */
  #retain(stream: ModelStream): void {
    const { log } = this.#stage;
    log.applyRetention(stream.id, this.#nowMs);
    const floor = log.floor(stream.id);
    assert.ok(floor >= stream.floor, 'I9: a floor never goes back');
    const committed = this.#committed.find(({ id }) => id === stream.id)?.events ?? [];
    if (floor > stream.floor) {
      const { events, bytes, ageMs } = stream.retention;
      const gone = committed.slice(stream.floor - 1, floor - 1);
      const kept = committed.slice(floor - 1);
      const enoughEvents = events > 0 && kept.length >= events;
      const enoughBytes = bytes > 0 && bytesOf(stream.id, floor, kept) >= bytes;
      const old = ageMs > 0 && gone.every(({ atMs }) => atMs <= this.#nowMs - ageMs);
      assert.ok(enoughEvents || enoughBytes || old, 'no limit lets these events go');
    }
    const keptEvents = committed.length - floor + 1;
    assert.ok(stream.retention.events === 0 || keptEvents <= 2 * stream.retention.events);
    stream.floor = floor;
  }

  /** Leaves so many tenths of what is kept. */
  #shrink(share: number): void {
    const { log } = this.#stage;
    const kept = log.keptBytes();
    assert.equal(
      kept,
      this.#streams.reduce((sum, { id }) => sum + log.bytes(id), 0),
      'the sum is that of the streams',
    );
    const bytesMax = (kept * share) / 10;
    const trimmed = new Set<number>();
    for (let before = -1; before < trimmed.size; ) {
      before = trimmed.size;
      for (const id of log.trimOldest(bytesMax)) trimmed.add(id);
    }
    const isLeast = this.#streams.every(({ id }) => log.bytes(id) <= LAST_BLOCK_BYTES_MAX);
    assert.ok(log.keptBytes() <= bytesMax || isLeast, 'what can go, goes');
    for (const stream of this.#streams) {
      const floor = log.floor(stream.id);
      assert.equal(
        floor > stream.floor,
        trimmed.has(stream.id),
        'the streams whose floors moved, and no others',
      );
      const committed = this.#committed.find(({ id }) => id === stream.id)?.events.length ?? 0;
      assert.ok(floor === stream.floor || floor <= committed, 'the last block stays');
      stream.floor = floor;
    }
  }

  #read(stream: ModelStream, at: number): void {
    const { log, reader } = this.#stage;
    const committed = this.#committed.find(({ id }) => id === stream.id)?.events.length ?? 0;
    const afterSeq = at % (committed + 2);
    const run = reader.read(stream.id, after(afterSeq, 1 + ((at * 7919) % 200_000), log.floor(stream.id)));
    const isThere = afterSeq + 1 >= stream.floor && afterSeq < committed;
    assert.equal(run !== null, isThere, 'what is kept can be read, and nothing else');
    if (run === null) return;
    assert.equal(run.firstSeq, afterSeq + 1);
    const events = stream.events.slice(afterSeq, run.lastSeq);
    const expected = events.map(({ size }, index) => frameOf(stream.id, afterSeq + 1 + index, size));
    assert.ok(Buffer.concat(expected).equals(run.frames));
  }

  async #reopen(): Promise<void> {
    this.#stage = await this.#stage.reopen();
    this.#streams = this.#committed.map(copyOf);
    const byId = (a: { id: number }, b: { id: number }) => a.id - b.id;
    assert.deepEqual(
      this.#stage.loaded.map(({ id, floor, head, closed }) => ({ id, floor, head, closed })).sort(byId),
      this.#streams
        .map(({ id, floor, closed, events }) => ({ id, floor, head: events.length, closed }))
        .sort(byId),
    );
    const { reader } = this.#stage;
    if (reader instanceof LmdbReader) assert.deepEqual([...reader.verify()], []);
  }
}

function copyOf(stream: ModelStream): ModelStream {
  return { ...stream, events: [...stream.events] };
}

function bytesOf(id: number, firstSeq: number, events: readonly ModelEvent[]): number {
  return events.reduce((sum, { size }, index) => sum + frameOf(id, firstSeq + index, size).length, 0);
}

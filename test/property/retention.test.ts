import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  AGE_MS_MIN,
  type ConfigProblem,
  mustGo,
  parseStreamConfig,
  type Retention,
  type StreamConfig,
  sameConfig,
} from '#gapless/core/retention.js';
import { RequestError } from '#gapless/errors.js';

const defaults: StreamConfig = {
  retention: { events: 7, bytes: 8, ageMs: 9000 },
  overflow: 'evict',
  ttlMs: 10,
};

/** A stream as the list of its events' sizes, trimmed after each append as the rules say. */
class ModelStream {
  kept: number[] = [];
  readonly all: number[] = [];
  readonly #retention: Retention;

  constructor(retention: Retention) {
    this.#retention = retention;
  }

  append(size: number): void {
    this.all.push(size);
    this.kept.push(size);
    this.kept.splice(0, mustGo(this.kept.length, this.#retention.events));
    let excess = mustGo(sum(this.kept), this.#retention.bytes);
    while ((this.kept[0] ?? Number.POSITIVE_INFINITY) <= excess) excess -= this.kept.shift() as number;
  }
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}

const appended = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 200 });

test('2.1 at least the newest events of the limit are kept, and never above twice that (I5)', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), appended, (events, sizes) => {
      const stream = new ModelStream({ events, bytes: 0, ageMs: 0 });
      for (const size of sizes) {
        stream.append(size);
        assert.ok(stream.kept.length >= Math.min(events, stream.all.length));
        assert.ok(stream.kept.length <= 2 * events);
        assert.deepEqual(stream.kept, stream.all.slice(-stream.kept.length));
      }
    }),
  );
});

test('2.1 at least the newest bytes of the limit are kept, and never above twice that (I5)', () => {
  fc.assert(
    // Whole events go, so twice the limit is kept to where an event is no larger than the limit.
    fc.property(fc.integer({ min: 9, max: 100 }), appended, (bytes, sizes) => {
      const stream = new ModelStream({ events: 0, bytes, ageMs: 0 });
      for (const size of sizes) {
        stream.append(size);
        assert.ok(sum(stream.kept) >= Math.min(bytes, sum(stream.all)));
        assert.ok(sum(stream.kept) <= 2 * bytes);
        assert.deepEqual(stream.kept, stream.all.slice(-stream.kept.length));
      }
    }),
  );
});

test('2.1 without a limit everything is kept', () => {
  fc.assert(
    fc.property(appended, (sizes) => {
      const stream = new ModelStream({ events: 0, bytes: 0, ageMs: 0 });
      for (const size of sizes) stream.append(size);
      assert.deepEqual(stream.kept, sizes);
    }),
  );
});

const absent = Symbol('absent');
const counts = fc.oneof(fc.constant(absent), fc.nat(), fc.maxSafeNat());
const notCounts: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, '5', [], {}, -1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY),
  fc.integer({ max: -1 }),
);
const ages = fc.oneof(
  fc.constant(absent),
  fc.constant(0),
  fc.maxSafeNat().map((age) => Math.max(age, AGE_MS_MIN)),
);
const notAges = fc.oneof(notCounts, fc.integer({ min: 1, max: AGE_MS_MIN - 1 }));

/** A field's value, and whether it is a bad one. */
function field(
  good: fc.Arbitrary<unknown>,
  bad: fc.Arbitrary<unknown>,
): fc.Arbitrary<readonly [unknown, boolean]> {
  return fc.oneof(fc.tuple(good, fc.constant(false)), fc.tuple(bad, fc.constant(true)));
}

const fields = fc.record({
  'retention.events': field(counts, notCounts),
  'retention.bytes': field(counts, notCounts),
  'retention.ageMs': field(ages, notAges),
  'retention.other': field(fc.constant(absent), fc.anything()),
  overflow: field(
    fc.constantFrom<unknown>(absent, 'evict', 'reject'),
    fc.constantFrom<unknown>('', 'drop', null, 1),
  ),
  ttlMs: field(counts, notCounts),
  other: field(fc.constant(absent), fc.anything()),
});

test('2.1 a configuration is taken whole, or refused naming each bad field and no other', () => {
  fc.assert(
    fc.property(fields, (drawn) => {
      const retention: Record<string, unknown> = {};
      const body: Record<string, unknown> = { retention };
      for (const [path, [value]] of Object.entries(drawn)) {
        if (value === absent) continue;
        if (path.startsWith('retention.')) retention[path.slice('retention.'.length)] = value;
        else body[path] = value;
      }
      const bad = Object.entries(drawn).flatMap(([path, [, isBad]]) => (isBad ? [path] : []));
      if (bad.length === 0) return assertTaken(parseStreamConfig(body, defaults), body, retention);
      assert.throws(
        () => parseStreamConfig(body, defaults),
        (error) => {
          assert.ok(error instanceof RequestError);
          const problems = error.extra.problems as readonly ConfigProblem[];
          assert.deepEqual(problems.map((problem) => problem.field).toSorted(), bad.toSorted());
          return true;
        },
      );
    }),
    { numRuns: 2000 },
  );
});

function assertTaken(
  config: StreamConfig,
  body: Readonly<Record<string, unknown>>,
  retention: Readonly<Record<string, unknown>>,
): void {
  assert.deepEqual(config, { ...defaults, ...body, retention: { ...defaults.retention, ...retention } });
  assert.ok(sameConfig(config, parseStreamConfig(JSON.parse(JSON.stringify(config)), defaults)));
}

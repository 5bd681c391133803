import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ConfigProblem,
  mayGo,
  mustGo,
  parseStreamConfig,
  type StreamConfig,
  sameConfig,
} from '#gapless/core/retention.js';
import { RequestError } from '#gapless/errors.js';

const defaults: StreamConfig = {
  retention: { events: 1000, bytes: 4 << 20, ageMs: 0 },
  overflow: 'evict',
  ttlMs: 0,
};

function problemsOf(json: unknown): readonly ConfigProblem[] {
  try {
    parseStreamConfig(json, defaults);
  } catch (error) {
    assert.ok(error instanceof RequestError);
    assert.equal(error.code, 'invalid_config');
    assert.equal(error.status, 400);
    return error.extra.problems as readonly ConfigProblem[];
  }
  return [];
}

test('2.1 every field of a configuration is optional, each on its own', () => {
  assert.deepEqual(parseStreamConfig(undefined, defaults), defaults);
  assert.deepEqual(parseStreamConfig({}, defaults), defaults);
  assert.deepEqual(parseStreamConfig({ retention: {} }, defaults), defaults);
  assert.deepEqual(parseStreamConfig({ retention: { events: 5 } }, defaults), {
    ...defaults,
    retention: { ...defaults.retention, events: 5 },
  });
});

test('2.1 a whole configuration is taken as given, 0 included', () => {
  const config = { retention: { events: 0, bytes: 1, ageMs: 60_000 }, overflow: 'reject', ttlMs: 3_600_000 };
  assert.deepEqual(parseStreamConfig(config, defaults), config);
});

test('2.1 every bad field is named at once, with what was given and what was expected', () => {
  const problems = problemsOf({
    retention: { events: -1, bytes: 1.5, ageMs: '60000', count: 5 },
    overflow: 'drop',
    ttlMs: null,
    ttl: 5,
  });
  assert.deepEqual(problems.map(({ field, value }) => `${field}=${value}`).toSorted(), [
    'overflow="drop"',
    'retention.ageMs="60000"',
    'retention.bytes=1.5',
    'retention.count=5',
    'retention.events=-1',
    'ttl=5',
    'ttlMs=null',
  ]);
  for (const { expected } of problems) assert.notEqual(expected, '');
});

test('2.1 a body that is not an object is one problem', () => {
  for (const json of [null, [], 'x', 5, true]) {
    assert.deepEqual(
      problemsOf(json).map(({ field }) => field),
      ['body'],
    );
  }
});

test('2.1 a retention that is not an object is one problem', () => {
  for (const retention of [null, [1], '1000', 1000]) {
    assert.deepEqual(
      problemsOf({ retention }).map(({ field }) => field),
      ['retention'],
    );
  }
});

test('2.1 an age that is shorter than a second is a problem like any other', () => {
  assert.deepEqual(
    problemsOf({ retention: { ageMs: 999 }, ttlMs: -1 }).map(({ field }) => field),
    ['ttlMs', 'retention.ageMs'],
  );
  assert.deepEqual(problemsOf({ retention: { ageMs: 1000 } }), []);
});

test('2.1 more bytes than can be kept are a problem, unless the server itself says so', () => {
  const bytesMax = 1 << 20;
  assert.equal(parseStreamConfig({}, defaults, bytesMax).retention.bytes, defaults.retention.bytes);
  assert.throws(
    () => parseStreamConfig({ retention: { bytes: bytesMax + 1 } }, defaults, bytesMax),
    /at most 1048576$/,
  );
});

test('2.1 a number that a double cannot hold exactly is refused', () => {
  for (const ttlMs of [2 ** 53, Number.POSITIVE_INFINITY, Number.NaN])
    assert.equal(problemsOf({ ttlMs }).length, 1);
  assert.equal(parseStreamConfig({ ttlMs: 2 ** 53 - 1 }, defaults).ttlMs, 2 ** 53 - 1);
});

test('2.1 names from the object prototype are unknown fields like any other', () => {
  assert.deepEqual(
    problemsOf(JSON.parse('{"__proto__": {"ttlMs": 5}, "constructor": 1}')).map(({ field }) => field),
    ['__proto__', 'constructor'],
  );
});

test('2.1 a hostile body gets a short answer, and no stack overflow', () => {
  const manyFields = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, i]));
  assert.equal(problemsOf(manyFields).length, 32);
  assert.throws(() => parseStreamConfig(manyFields, defaults), /and 9968 more$/);

  const deep = JSON.parse(`{"ttlMs": ${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
  assert.deepEqual(problemsOf(deep)[0]?.value, 'an array');
  const long = problemsOf({ ['x'.repeat(100_000)]: 'y'.repeat(100_000) })[0];
  assert.ok(JSON.stringify(long).length < 300);
});

test('2.1 configurations are the same when each field is', () => {
  assert.ok(sameConfig(defaults, structuredClone(defaults)));
  const others: StreamConfig[] = [
    { ...defaults, ttlMs: 1 },
    { ...defaults, overflow: 'reject' },
    { ...defaults, retention: { ...defaults.retention, events: 1 } },
    { ...defaults, retention: { ...defaults.retention, bytes: 1 } },
    { ...defaults, retention: { ...defaults.retention, ageMs: 1 } },
  ];
  for (const other of others) assert.ok(!sameConfig(defaults, other));
});

test('2.1 nothing must go up to twice the limit; above it, all beyond the limit', () => {
  assert.deepEqual(
    [0, 10, 20, 21, 35].map((kept) => mustGo(kept, 10)),
    [0, 0, 0, 11, 25],
  );
});

test('2.1 what is beyond the limit may go where room is wanted', () => {
  assert.deepEqual(
    [0, 10, 11, 20, 35].map((kept) => mayGo(kept, 10)),
    [0, 0, 1, 10, 25],
  );
});

test('2.1 a limit of 0 is no limit', () => {
  assert.equal(mustGo(1e12, 0), 0);
  assert.equal(mayGo(1e12, 0), 0);
});

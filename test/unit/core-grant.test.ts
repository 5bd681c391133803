import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  allows,
  FULL_GRANT,
  type Grant,
  matchesPattern,
  NO_GRANT,
  type Right,
  readGrant,
} from '#gapless/core/grant.js';

const RIGHTS: readonly Right[] = ['publish', 'subscribe', 'inspect', 'admin', 'metrics'];
const NAME = fc.stringMatching(/^[A-Za-z0-9._~:-]{1,20}$/);
const PATTERN = fc.oneof(NAME, fc.stringMatching(/^[A-Za-z0-9._~:-]{0,6}\*$/));

function grant(given: Partial<Grant>): Grant {
  return { ...NO_GRANT, ...given };
}

test('9.1 a pattern without a star is one name, with one at its end the beginning of names', () => {
  assert.ok(matchesPattern('jobs', 'jobs'));
  assert.ok(!matchesPattern('jobs', 'jobs2'));
  assert.ok(!matchesPattern('jobs', 'job'));
  assert.ok(matchesPattern('jobs-*', 'jobs-1'));
  assert.ok(matchesPattern('jobs-*', 'jobs-'));
  assert.ok(!matchesPattern('jobs-*', 'jobs'));
  assert.ok(matchesPattern('*', 'anything'));
});

test('9.1 characters of a pattern mean themselves: a dot is no wildcard', () => {
  assert.ok(!matchesPattern('a.c', 'abc'));
  assert.ok(!matchesPattern('a.*', 'ab'));
});

test('9.1 a pattern matches exactly the names that begin as it does', () => {
  fc.assert(
    fc.property(PATTERN, NAME, (pattern, name) => {
      const expected = pattern.endsWith('*')
        ? name.slice(0, pattern.length - 1) === pattern.slice(0, -1)
        : name === pattern;
      assert.equal(matchesPattern(pattern, name), expected);
    }),
  );
});

test('9.1 each right is given by its own claim, and by no other', () => {
  const publisher = grant({ publish: ['a'] });
  const subscriber = grant({ subscribe: ['a'] });
  const admin = grant({ admin: true });
  const scraper = grant({ metrics: true });
  const rightsOf = (given: Grant): Right[] => RIGHTS.filter((right) => allows(given, right, 'a'));
  assert.deepEqual(rightsOf(publisher), ['publish', 'inspect']);
  assert.deepEqual(rightsOf(subscriber), ['subscribe', 'inspect']);
  assert.deepEqual(rightsOf(admin), ['inspect', 'admin', 'metrics']);
  assert.deepEqual(rightsOf(scraper), ['metrics']);
  assert.deepEqual(rightsOf(NO_GRANT), []);
  assert.deepEqual(rightsOf(FULL_GRANT), RIGHTS);
});

test('9.1 a right to one stream is none to another, whatever the patterns', () => {
  fc.assert(
    fc.property(fc.array(PATTERN, { maxLength: 5 }), NAME, (publish, name) => {
      const expected = publish.some((pattern) => matchesPattern(pattern, name));
      assert.equal(allows(grant({ publish }), 'publish', name), expected);
      assert.equal(allows(grant({ publish }), 'subscribe', name), false);
    }),
  );
});

test('9.1 a claim that is absent grants nothing, and members that are not known are left alone', () => {
  assert.deepEqual(readGrant(undefined), NO_GRANT);
  assert.deepEqual(readGrant({}), NO_GRANT);
  assert.deepEqual(readGrant({ publish: ['a*'], future: 1 }), grant({ publish: ['a*'] }));
});

test('9.1 a claim of another shape is refused whole, and never half understood', () => {
  const wrong: unknown[] = [
    null,
    'all',
    ['*'],
    { publish: '*' },
    { publish: [1] },
    { publish: ['a b'] },
    { publish: ['*a'] },
    { publish: ['a*b*'] },
    { publish: [''] },
    { subscribe: ['a', '../b'] },
    { subscribe: Array.from({ length: 101 }, () => 'a') },
    { admin: 'true' },
    { admin: 1 },
    { metrics: null },
  ];
  for (const claim of wrong) assert.equal(readGrant(claim), null, JSON.stringify(claim));
});

test('9.1 no claim at all makes the reader throw or grant what it does not name', () => {
  fc.assert(
    fc.property(fc.anything(), (claim) => {
      const read = readGrant(claim);
      if (read === null) return;
      const asked = typeof claim === 'object' && claim !== null ? (claim as Record<string, unknown>) : {};
      assert.equal(read.admin, asked.admin === true);
      assert.deepEqual(read.publish, asked.publish ?? []);
    }),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvariantError, assert as invariant } from '#gapless/assert.js';
import { ERRORS, RequestError } from '#gapless/errors.js';

test('8 the error codes are in alphabetical order', () => {
  const codes = Object.keys(ERRORS);
  assert.deepEqual(codes, codes.toSorted());
});

test('8 every error code has an error status, a title and a sentence of documentation', () => {
  for (const [code, entry] of Object.entries(ERRORS)) {
    assert.match(code, /^[a-z][a-z0-9_]+$/);
    assert.ok(entry.status >= 400 && entry.status <= 599, code);
    assert.match(entry.title, /^[A-Z].*[^.]$/, code);
    assert.match(entry.doc, /^[A-Z].*\.$/, code);
    assert.equal(typeof entry.retry, 'boolean', code);
  }
});

test('8 what may succeed when it is sent again is a server error, or says that it was too much at once', () => {
  for (const [code, entry] of Object.entries(ERRORS)) {
    if (entry.retry) assert.ok(entry.status >= 500 || entry.status === 429, code);
  }
});

test('8 a refusal has no stack, and what is thrown after it has one', () => {
  assert.doesNotMatch(new RequestError('not_found').stack ?? '', /\n\s+at /);
  assert.match(new Error('ours').stack ?? '', /\n\s+at /);
});

test('8 a problem has type, title, status and code, then the detail and what else it carries', () => {
  const extra = { reason: 'evicted', earliest: 'abcdefghij.41' };
  assert.deepEqual(new RequestError('resume_unavailable', 'events 8 to 41 are gone', extra).problem(), {
    type: 'urn:gapless:error:resume_unavailable',
    title: ERRORS.resume_unavailable.title,
    status: 410,
    code: 'resume_unavailable',
    detail: 'events 8 to 41 are gone',
    reason: 'evicted',
    earliest: 'abcdefghij.41',
  });
});

test('8 a problem without a detail has no such member', () => {
  assert.deepEqual(Object.keys(new RequestError('not_found').problem()), ['type', 'title', 'status', 'code']);
});

test('8 a request error carries its status and the headers of the answer', () => {
  const error = new RequestError('method_not_allowed', undefined, {}, { Allow: 'GET, POST' });
  assert.equal(error.status, 405);
  assert.deepEqual(error.headers, { Allow: 'GET, POST' });
  assert.equal(error.message, ERRORS.method_not_allowed.title);
});

test('a broken invariant throws, a kept one does not', () => {
  invariant(true, 'I1: never');
  assert.throws(
    () => invariant(false, 'I1: seqs are consecutive'),
    (error) => error instanceof InvariantError && error.message === 'I1: seqs are consecutive',
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEventType } from '#gapless/core/event-type.js';
import { isStreamName } from '#gapless/core/stream-name.js';

test('2.4 a stream name is 1 to 200 of the characters that stand in a path as they are', () => {
  for (const name of ['a', 'Z9', 'a.b_c~d:e-f', '...', '.a', '-', 'x'.repeat(200)])
    assert.ok(isStreamName(name), name);
});

test('2.4 other names are refused', () => {
  const bad = [
    '',
    '.',
    '..',
    'x'.repeat(201),
    'a b',
    'a/b',
    'a%20b',
    'a%2e',
    'ä',
    'a\n',
    'a\0',
    '\na',
    '*',
    'a,b',
  ];
  for (const name of bad) assert.ok(!isStreamName(name), JSON.stringify(name));
});

test('3.2 an event type may be any text of at most 128 bytes', () => {
  const good = [
    '',
    'message',
    'tick',
    'tool.call/progress',
    ' spaced ',
    'a:b',
    'error',
    'größe',
    '\u{1f600}',
  ];
  for (const type of good) checkEventType(type);
  checkEventType('x'.repeat(128));
  checkEventType('é'.repeat(64));
  checkEventType('€'.repeat(42));
  checkEventType('\u{1f600}'.repeat(32));
});

test('3.2 an event type over 128 bytes of UTF-8 is refused, however few its characters', () => {
  for (const type of [
    'x'.repeat(129),
    'é'.repeat(65),
    '€'.repeat(43),
    '\u0800'.repeat(43),
    '\u{1f600}'.repeat(33),
    'x'.repeat(1 << 20),
  ]) {
    assert.throws(() => checkEventType(type), {
      name: 'RequestError',
      code: 'invalid_event_type',
      status: 400,
    });
  }
});

test('3.2 an event type that would break out of its line, or is no text, is refused', () => {
  for (const type of ['a\nb', 'a\r', '\r\ndata: x', 'a\0', '\ud800', 'a\udc00b']) {
    assert.throws(() => checkEventType(type), { code: 'invalid_event_type', status: 400 });
  }
});

test("3.2 the server's own words are refused as event types, and only exactly they", () => {
  for (const type of ['stream_closed', 'stream_deleted', 'resume_unavailable']) {
    assert.throws(() => checkEventType(type), { code: 'reserved_type', status: 400 });
    checkEventType(type.toUpperCase());
    checkEventType(`${type}d`);
  }
});

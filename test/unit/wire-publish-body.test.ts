import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { decodePublish } from '#gapless/wire/publish-body.js';
import { joinFrames } from '../property/frame-run.js';

const limits = { eventBytesMax: 1000, batchEventsMax: 5 };
const batch = new FrameBatch(1 << 20);

interface Published {
  readonly type: string | null;
  readonly data: string;
  readonly encoding: 'base64' | null;
}

function publish(
  contentType: string,
  body: string | Uint8Array,
  eventType: string | null = null,
): Published[] {
  decodePublish(contentType, typeof body === 'string' ? Buffer.from(body) : body, eventType, limits, batch);
  return parseFrames(joinFrames('abcdefghij', 1, batch)).map(({ type, data, encoding }) => ({
    type,
    data: Buffer.from(data).toString(),
    encoding,
  }));
}

function data(contentType: string, body: string | Uint8Array): string[] {
  return publish(contentType, body).map((event) => event.data);
}

test('3.1 the body of each text type is one event, as it is', () => {
  for (const type of ['application/json', 'text/plain', '', 'application/x-www-form-urlencoded']) {
    assert.deepEqual(publish(type, '{"a": 1,}&b=%20'), [
      { type: null, data: '{"a": 1,}&b=%20', encoding: null },
    ]);
  }
});

test('3.1 an empty text is an event with empty data', () => {
  assert.deepEqual(data('text/plain', ''), ['']);
  assert.deepEqual(data('', ''), ['']);
  assert.deepEqual(publish('application/octet-stream', ''), [{ type: null, data: '', encoding: 'base64' }]);
});

test('3.1 every line break of a text arrives as LF, the last one too', () => {
  assert.deepEqual(data('text/plain', 'a\r\nb\rc\nd\r\n'), ['a\nb\nc\nd\n']);
});

test('3.1 a byte order mark is data like any other', () => {
  assert.deepEqual(data('text/plain', '\ufeffx'), ['\ufeffx']);
});

test('3.1 each line of NDJSON is an event; a CR before the LF is not data, and the last LF may be missing', () => {
  assert.deepEqual(data('application/x-ndjson', '{"n":1}\n{"n":2}\r\n{"n":3}'), [
    '{"n":1}',
    '{"n":2}',
    '{"n":3}',
  ]);
  assert.deepEqual(data('application/x-ndjson', '1\n2\r'), ['1', '2']);
});

test('3.1 blank lines of NDJSON are skipped', () => {
  assert.deepEqual(data('application/x-ndjson', '\n\r\n1\n \t\r\n\n2\n\n'), ['1', '2']);
});

test('3.1 a CR inside a line of NDJSON is a line break of its data', () => {
  assert.deepEqual(data('application/x-ndjson', '{"a":\r1}\n2'), ['{"a":\n1}', '2']);
});

test('3.1 a batch without events is an empty batch', () => {
  const empty = [
    ['application/x-ndjson', ''],
    ['application/x-ndjson', '\n \r\n\n'],
    ['application/vnd.gapless.batch+json', ' [ ] '],
    ['application/msgpack', Uint8Array.of(0x90)],
  ] as const;
  for (const [type, body] of empty)
    assert.throws(() => publish(type, body), { code: 'empty_batch', status: 400 });
});

test('3.1 binary bytes become base64', () => {
  assert.deepEqual(publish('application/octet-stream', Uint8Array.of(0, 255, 10, 13)), [
    { type: null, data: 'AP8KDQ==', encoding: 'base64' },
  ]);
});

test('3.1 text that is not UTF-8 is refused, whatever the text type', () => {
  const broken = [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x61, 0x80]];
  const types = [
    '',
    'text/plain',
    'application/json',
    'application/x-ndjson',
    'application/vnd.gapless.batch+json',
  ];
  for (const type of types) {
    for (const bytes of broken) {
      assert.throws(() => publish(type, Uint8Array.from(bytes)), { code: 'invalid_utf8', status: 400 });
    }
  }
});

test('3.1 the content type is read without regard to case, spaces and parameters', () => {
  assert.deepEqual(data('Application/JSON', 'x'), ['x']);
  assert.deepEqual(data('text/plain; charset=utf-8', 'x'), ['x']);
  assert.deepEqual(data('text/plain;charset="UTF-8"; format=flowed', 'x'), ['x']);
  assert.deepEqual(data(' application/x-ndjson ;charset=utf8', '1\n2'), ['1', '2']);
  assert.equal(publish('application/octet-stream; charset=binary', 'x').length, 1);
});

test('8 another content type or another charset is unsupported', () => {
  const types = [
    'text/html',
    'application/xml',
    'application',
    '*/*',
    'application/json, text/plain',
    'constructor',
  ];
  for (const type of [...types, 'text/plain; charset=iso-8859-1', 'application/json; charset=utf-16']) {
    assert.throws(() => publish(type, 'x'), { code: 'unsupported_type', status: 415 }, type);
  }
});

test('3.2 the header gives the type of every event of the body', () => {
  assert.deepEqual(publish('text/plain', 'x', 'tick')[0]?.type, 'tick');
  assert.deepEqual(
    publish('application/x-ndjson', '1\n2', 'tick').map(({ type }) => type),
    ['tick', 'tick'],
  );
  assert.equal(publish('application/octet-stream', 'x', 'tick')[0]?.type, 'tick');
  assert.equal(publish('text/plain', 'x', 'message')[0]?.type, null);
  assert.equal(publish('text/plain', 'x', '')[0]?.type, null);
});

test('3.2 a bad type in the header is refused', () => {
  assert.throws(() => publish('text/plain', 'x', 'a\nb'), { code: 'invalid_event_type' });
  assert.throws(() => publish('text/plain', 'x', 'stream_closed'), { code: 'reserved_type' });
});

test('3.6 an event may have as many bytes as the limit says, and not one more', () => {
  const whole = 'x'.repeat(1000);
  for (const type of ['text/plain', 'application/octet-stream', 'application/x-ndjson']) {
    assert.equal(publish(type, whole).length, 1);
    assert.throws(() => publish(type, `${whole}x`), { code: 'event_too_large', status: 413 });
  }
  assert.throws(() => publish('application/x-ndjson', `1\n${whole}x\n2`), { code: 'event_too_large' });
});

test('3.6 a batch may have as many events as the limit says, and not one more', () => {
  assert.equal(publish('application/x-ndjson', '1\n2\n3\n4\n5\n\n').length, 5);
  assert.throws(() => publish('application/x-ndjson', '1\n2\n3\n4\n5\n6'), {
    code: 'batch_too_large',
    status: 413,
  });
});

test('a refused body leaves nothing behind for the next one', () => {
  assert.throws(() => publish('application/x-ndjson', '1\n2\n3\n4\n5\n6'));
  assert.deepEqual(data('text/plain', 'next'), ['next']);
});

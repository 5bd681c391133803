import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Packr } from 'msgpackr';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { parseFrames } from '#gapless/core/sse-parse.js';
import { decodePublish } from '#gapless/wire/publish-body.js';
import { joinFrames } from '../property/frame-run.js';

const JSON_BATCH = 'application/vnd.gapless.batch+json';
const MSGPACK = 'application/msgpack';

const limits = { eventBytesMax: 1 << 20, batchEventsMax: 1000 };
const batch = new FrameBatch(1 << 24);
const packr = new Packr({ useRecords: false });

/** Each event as `type:data`, binary ones as `type:base64:data`. */
function publish(contentType: string, body: Uint8Array, eventType: string | null = null): string[] {
  decodePublish(contentType, body, eventType, limits, batch);
  return parseFrames(joinFrames('abcdefghij', 1, batch)).map(
    ({ type, encoding, data }) => `${type}:${encoding === null ? '' : `${encoding}:`}${Buffer.from(data)}`,
  );
}

function publishJson(body: string, eventType: string | null = null): string[] {
  return publish(JSON_BATCH, Buffer.from(body), eventType);
}

function publishPacked(value: unknown, eventType: string | null = null): string[] {
  return publish(MSGPACK, packr.pack(value), eventType);
}

/** One MessagePack event whose data is the given bytes, byte for byte. */
function packedData(...data: readonly (number | Uint8Array)[]): Uint8Array {
  const pieces = data.map((piece) => (typeof piece === 'number' ? Uint8Array.of(piece) : piece));
  return Buffer.concat([Uint8Array.of(0x91, 0x81, 0xa4), Buffer.from('data'), ...pieces]);
}

test('3.1 a JSON batch gives each event its type and its data', () => {
  const body = '[{"type":"a","data":"x"}, {"data":{"n":1}} ,\r\n\t{"data":[1,2],"type":"b"}]';
  assert.deepEqual(publishJson(body), ['a:x', 'null:{"n":1}', 'b:[1,2]']);
});

test('3.1 a MessagePack batch gives each event its type and its data', () => {
  const body = [{ type: 'a', data: 'x' }, { data: { n: 1 } }, { data: [1, 2], type: 'b' }];
  assert.deepEqual(publishPacked(body), ['a:x', 'null:{"n":1}', 'b:[1,2]']);
});

test('3.2 the header is the type of those that name none; message makes an event untyped', () => {
  assert.deepEqual(publishJson('[{"data":1},{"type":"b","data":2},{"type":"message","data":3}]', 'a'), [
    'a:1',
    'b:2',
    'null:3',
  ]);
  assert.deepEqual(publishPacked([{ data: 1 }, { type: 'b', data: 2 }, { type: '', data: 3 }], 'a'), [
    'a:1',
    'b:2',
    'null:3',
  ]);
});

test('3.1 a JSON string is text, its escapes resolved', () => {
  assert.deepEqual(publishJson(String.raw`[{"data":"a\"\\\/\u00e9\ud83d\ude00\t\u0000"}]`), [
    'null:a"\\/é\u{1f600}\t\0',
  ]);
  assert.deepEqual(publishJson('[{"data":"größe"},{"data":""}]'), ['null:größe', 'null:']);
  assert.deepEqual(publishJson(String.raw`[{"data":"a\r\nb\rc\nd"}]`), ['null:a\nb\nc\nd']);
  assert.deepEqual(publishJson(String.raw`[{"d\u0061ta":"x","\u0074ype":"\u0074"}]`), ['t:x']);
});

test('3.1 a member that stands twice is refused, whatever its first value is', () => {
  for (const body of [
    '[{"data":[}],"data":"x"}]',
    '[{"data":1,"data":2}]',
    '[{"type":"a","data":1,"type":"a"}]',
  ]) {
    assert.throws(() => publishJson(body), { code: 'invalid_body' });
  }
  const name = [0xa4, ...Buffer.from('data')];
  assert.throws(() => publish(MSGPACK, Uint8Array.of(0x91, 0x82, ...name, 1, ...name, 2)), {
    code: 'invalid_body',
  });
});

test('3.1 other JSON values are passed on as they stand, every digit of them', () => {
  const values = [
    'null',
    'true',
    'false',
    '0',
    '-0',
    '1.50',
    '1e3',
    '12345678901234567890',
    '{}',
    '[ ]',
    '{"a":"]}"}',
  ];
  assert.deepEqual(
    publishJson(`[${values.map((value) => `{"data": ${value} }`).join(',')}]`),
    values.map((value) => `null:${value}`),
  );
});

test('3.1 MessagePack values become their JSON, every digit of them', () => {
  const cases: [bytes: number[], json: string][] = [
    [[0xc0], 'null'],
    [[0xc2], 'false'],
    [[0xc3], 'true'],
    [[0x7f], '127'],
    [[0xe0], '-32'],
    [[0xcc, 0xff], '255'],
    [[0xcd, 0xff, 0xff], '65535'],
    [[0xce, 0xff, 0xff, 0xff, 0xff], '4294967295'],
    [[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], '18446744073709551615'],
    [[0xd0, 0x80], '-128'],
    [[0xd1, 0x80, 0x00], '-32768'],
    [[0xd2, 0x80, 0x00, 0x00, 0x00], '-2147483648'],
    [[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0], '-9223372036854775808'],
    [[0xca, 0x3f, 0xc0, 0x00, 0x00], '1.5'],
    [[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], '1.5'],
    [[0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0], 'null'],
    [[0x90], '[]'],
    [[0x80], '{}'],
    [[0xdc, 0x00, 0x01, 0x05], '[5]'],
    [[0xdd, 0x00, 0x00, 0x00, 0x01, 0x05], '[5]'],
    [[0xde, 0x00, 0x01, 0xa1, 0x61, 0x05], '{"a":5}'],
    [[0xdf, 0x00, 0x00, 0x00, 0x01, 0xa1, 0x61, 0x05], '{"a":5}'],
    [[0x81, 0x05, 0x06], '{"5":6}'],
    [[0x91, 0xa1, 0x22], '["\\""]'],
  ];
  for (const [bytes, json] of cases)
    assert.deepEqual(publish(MSGPACK, packedData(...bytes)), [`null:${json}`]);
});

test('3.1 MessagePack strings and bytes of every length form are text and binary events', () => {
  assert.deepEqual(publish(MSGPACK, packedData(0xa1, 0x61)), ['null:a']);
  assert.deepEqual(publish(MSGPACK, packedData(0xd9, 1, 0x61)), ['null:a']);
  assert.deepEqual(publish(MSGPACK, packedData(0xda, 0, 1, 0x61)), ['null:a']);
  assert.deepEqual(publish(MSGPACK, packedData(0xdb, 0, 0, 0, 1, 0x61)), ['null:a']);
  assert.deepEqual(publish(MSGPACK, packedData(0xc4, 1, 0xff)), ['null:base64:/w==']);
  assert.deepEqual(publish(MSGPACK, packedData(0xc5, 0, 1, 0xff)), ['null:base64:/w==']);
  assert.deepEqual(publish(MSGPACK, packedData(0xc6, 0, 0, 0, 1, 0xff)), ['null:base64:/w==']);
});

test('3.1 a name such as __proto__ in data is a name', () => {
  assert.deepEqual(publishJson('[{"data":{"__proto__":{"x":1}}}]'), ['null:{"__proto__":{"x":1}}']);
  const name = Buffer.from('__proto__');
  assert.deepEqual(publish(MSGPACK, packedData(0x81, 0xa9, name, 0x80)), ['null:{"__proto__":{}}']);
});

test('3.1 a JSON batch of another shape is an invalid body', () => {
  const bodies = [
    // No array.
    ...['', '   ', 'null', '5', '"x"', '{}', '{"data":1}', '\ufeff[{"data":1}]'],
    // An array that does not end, or does not end there.
    ...['[', '[{"data":1}', '[{"data":"\\', '[{"data":"x', '[{"data":["x', '[{"data":[{'],
    ...['[]]', '[] x', '[{"data":1}] //', '[{"data":1},]', '[,{"data":1}]', '[{"data":1}{"data":2}]'],
    // Elements that are no events.
    ...['[1]', '[null]', '["x"]', '[[]]', '[{}]', '[{"type":"a"}]', '[{"data":1,"id":"x"}]'],
    ...['[{"data":1,"__proto__":{}}]', '[{"data":1,"type":5}]', '[{"data":1,"type":null}]'],
    // Objects that are not JSON.
    ...['[{"data":1,}]', '[{,"data":1}]', '[{"data" 1}]', '[{"data":}]', '[{"data"}]', '[{data:1}]'],
    // Data that is not JSON.
    ...[
      'undefined',
      'NaN',
      '01',
      '1 2',
      'tru',
      '[}',
      '{]',
      '{"a":1,}',
      '[1,]',
      "'x'",
      '"\\x"',
      '"\\u12"',
    ].map((data) => `[{"data":${data}}]`),
    '[{"data":"a\nb"}]',
  ];
  for (const body of bodies) {
    assert.throws(() => publishJson(body), { name: 'RequestError', code: 'invalid_body', status: 400 }, body);
  }
});

test('3.1 a MessagePack batch of another shape is an invalid body', () => {
  const noEvents = [[1], [null], [[]], [{}], [{ type: 'a' }], [{ data: 1, id: 'x' }], [{ data: 1, type: 5 }]];
  for (const value of [null, 5, 'x', {}, { data: 1 }, ...noEvents, [{ data: [Buffer.from('x')] }]]) {
    assert.throws(() => publishPacked(value), { name: 'RequestError', code: 'invalid_body', status: 400 });
  }
  const [bytesAsKey, mapAsKey] = [packedData(0x81, 0xc4, 1, 0x61, 1), packedData(0x81, 0x80, 1)];
  const [unused, trailing] = [packedData(0xc1), packedData(0x01, 0xc0)];
  for (const body of [bytesAsKey, mapAsKey, unused, trailing, new Uint8Array(0)]) {
    assert.throws(() => publish(MSGPACK, body), { code: 'invalid_body' });
  }
});

test('3.1 MessagePack extensions are refused: timestamps, records, and all others', () => {
  for (const value of [new Date(0), new Set([1]), /x/, undefined]) {
    const body = new Packr({ useRecords: false, moreTypes: true }).pack([{ data: value }]);
    assert.throws(() => publish(MSGPACK, body), { code: 'invalid_body' });
  }
  assert.throws(() => publish(MSGPACK, new Packr({ useRecords: true }).pack([{ data: 1 }])), {
    code: 'invalid_body',
  });
  for (const header of [0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8]) {
    assert.throws(() => publish(MSGPACK, packedData(header, new Uint8Array(20).fill(1))), {
      code: 'invalid_body',
    });
  }
});

test('3.1 text in a batch that has no UTF-8 is refused', () => {
  for (const body of [String.raw`[{"data":"\ud800"}]`, String.raw`[{"data":"a\udc00b"}]`]) {
    assert.throws(() => publishJson(body), { code: 'invalid_utf8', status: 400 });
  }
  for (const data of [
    [0xa1, 0xff],
    [0x91, 0xa1, 0xff],
    [0x81, 0xa1, 0xff, 0x01],
  ]) {
    assert.throws(() => publish(MSGPACK, packedData(...data)), { code: 'invalid_utf8', status: 400 });
  }
});

test('3.2 a bad type in a batch is refused', () => {
  const types = [
    ['a\nb', 'invalid_event_type'],
    ['x'.repeat(129), 'invalid_event_type'],
    ['stream_closed', 'reserved_type'],
  ];
  for (const [type, code] of types) {
    assert.throws(() => publishJson(JSON.stringify([{ data: 1 }, { data: 2, type }])), { code });
    assert.throws(() => publishPacked([{ data: 1 }, { data: 2, type }]), { code });
  }
});

test('3.6 lengths that promise more than the body has cost nothing', () => {
  const huge = [0xff, 0xff, 0xff, 0xff];
  for (const header of [0xc6, 0xdb, 0xdd, 0xdf]) {
    assert.throws(() => publish(MSGPACK, packedData(header, ...huge)), { code: 'invalid_body' });
  }
  assert.throws(() => publish(MSGPACK, Uint8Array.of(0xdd, ...huge)), { code: 'batch_too_large' });

  test('3.6 an event that becomes too large as JSON is refused', () => {
    const large = 'x'.repeat(limits.eventBytesMax);
    assert.deepEqual(publishJson(JSON.stringify([{ data: large }])), [`null:${large}`]);
    assert.deepEqual(publishPacked([{ data: large }]), [`null:${large}`]);
    for (const data of [`${large}x`, [large], { [large]: 1 }]) {
      assert.throws(() => publishJson(JSON.stringify([{ data }])), { code: 'event_too_large', status: 413 });
      assert.throws(() => publishPacked([{ data }]), { code: 'event_too_large', status: 413 });
    }
    const falses = new Uint8Array(1 << 18).fill(0xc2);
    assert.throws(() => publish(MSGPACK, packedData(0xdd, 0, 4, 0, 0, falses)), { code: 'event_too_large' });
  });
});

test('3.6 an event is known to be too large before it is read whole', () => {
  const tooLarge = { code: 'event_too_large' };
  assert.throws(() => publishJson(`[{"data":[${'?'.repeat(limits.eventBytesMax)}]}]`), tooLarge);
  const falses = new Uint8Array(1 << 18).fill(0xc2);
  assert.throws(() => publish(MSGPACK, packedData(0xdd, 0, 4, 0, 1, falses, 0xc4, 0)), tooLarge);
  const noText = new Uint8Array(1 << 21).fill(0xff);
  assert.throws(() => publish(MSGPACK, packedData(0x91, 0xdb, 0, 0x20, 0, 0, noText)), tooLarge);
});

test('3.6 nesting of any depth is taken or refused, and exhausts no stack', () => {
  const depth = 400_000;
  const nested = '['.repeat(depth) + ']'.repeat(depth);
  assert.equal(publishJson(`[{"data":${nested}}]`)[0]?.length, 'null:'.length + 2 * depth);
  assert.throws(() => publishJson(`[{"data":${'[{"a":'.repeat(100_000)}`), { code: 'invalid_body' });
  assert.throws(() => publishJson('['.repeat(1 << 20)), { code: 'invalid_body' });

  assert.throws(() => publish(MSGPACK, packedData(new Uint8Array(100_000).fill(0x91), 0x90)), {
    code: 'invalid_body',
  });
  assert.throws(() => publish(MSGPACK, new Uint8Array(1 << 20).fill(0x91)), { code: 'invalid_body' });
  assert.deepEqual(publish(MSGPACK, packedData(new Uint8Array(128).fill(0x91), 0x05)), [
    `null:${'['.repeat(128)}5${']'.repeat(128)}`,
  ]);
});

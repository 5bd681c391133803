import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pack } from 'msgpackr';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import {
  assertProblem,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishLines,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

describeOnEdges('3.1 publish bodies', [], (broker) => {
  /** What a subscriber from the beginning gets. */
  async function delivered(stream: string): Promise<SseSubscription> {
    const { head } = await stateOf(broker.port, stream);
    const subscription = await SseSubscription.open(broker.port, stream, {
      cursor: 'earliest',
      keepText: true,
    });
    await subscription.untilEvents(head);
    subscription.cut();
    return subscription;
  }

  async function refuse(
    body: string | Uint8Array,
    contentType: string,
    status: number,
    code: string,
  ): Promise<void> {
    const stream = freshStream('refused');
    const { epoch } = await publish(broker.port, stream, 'before');
    assertProblem(await request(broker.port, publishRequest(stream, body, contentType)), status, code);
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.head], [epoch, 1], `${code} changed the stream`);
  }

  for (const contentType of [
    MEDIA_TYPES.json,
    MEDIA_TYPES.text,
    MEDIA_TYPES.form,
    '',
    'text/plain; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
  ]) {
    it(`3.1 a body of ${contentType === '' ? 'no type' : contentType} is one event's data as it is`, async () => {
      const bodies = [
        '{"a": 1,  "b":[true]}',
        'name=value&x=%20y+z',
        'not json {',
        ' leading and trailing ',
        '0',
        'é✓𝄞',
      ];
      const stream = freshStream('body');
      for (const body of bodies) await publish(broker.port, stream, body, contentType);
      assert.deepEqual((await delivered(stream)).data, bodies);
      assert.deepEqual(
        (await readAll(broker.port, stream)).map((event) => event.data),
        bodies,
      );
    });
  }

  for (const [name, lineBreak] of [
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ] as const) {
    it(`3.1 a ${name} in the data arrives as LF, wherever it stands`, async () => {
      const stream = freshStream('break');
      const texts = ['a|b', '|a', 'a|', '|', '||', 'a||b', '|a|b||'];
      for (const text of texts) await publish(broker.port, stream, text.replaceAll('|', lineBreak));
      const expected = texts.map((text) => text.replaceAll('|', '\n'));
      assert.deepEqual((await delivered(stream)).data, expected);
      assert.deepEqual(
        (await readAll(broker.port, stream)).map((event) => event.data),
        expected,
      );
    });
  }

  it('3.1 no data can forge a frame: text that looks like SSE arrives as data', async () => {
    const stream = freshStream('forge');
    const texts = [
      'x\n\nid: aaaaaaaaaa.99\ndata: forged\n\n',
      'id: 1',
      'event: stream_closed\ndata: {}\n\n',
      ':comment',
      'data: data: ',
      '\ufeffBOM',
      'nul \0 and \u2028 and \u0085',
    ];
    for (const text of texts) await publish(broker.port, stream, text);
    const subscription = await delivered(stream);
    assert.deepEqual(subscription.data, texts);
    assert.deepEqual(subscription.seqs, range(1, texts.length));
  });

  it('3.1 an empty text is an event with empty data', async () => {
    const stream = freshStream('empty');
    for (const contentType of [MEDIA_TYPES.text, MEDIA_TYPES.json, ''])
      await publish(broker.port, stream, '', contentType);
    assert.deepEqual((await delivered(stream)).data, ['', '', '']);
  });

  it('3.1 each line of application/x-ndjson is one event; blank lines are skipped; a final CR belongs to the break', async () => {
    const stream = freshStream('ndjson');
    const { first, last } = await publish(
      broker.port,
      stream,
      '{"n":1}\n\r\n\n{"n":2}\r\n  {"n":3}\n\n',
      MEDIA_TYPES.ndjson,
    );
    assert.deepEqual([first, last], [1, 3]);
    await publish(broker.port, stream, 'last line without a break', MEDIA_TYPES.ndjson);
    await publish(broker.port, stream, 'in\rside\n', MEDIA_TYPES.ndjson);
    const expected = ['{"n":1}', '{"n":2}', '  {"n":3}', 'last line without a break', 'in\nside'];
    assert.deepEqual((await delivered(stream)).data, expected);
  });

  it('3.1 application/octet-stream is one binary event: base64, marked in SSE and in JSON', async () => {
    const stream = freshStream('binary');
    const blobs = [
      Buffer.from([0, 255, 10, 13, 128]),
      Buffer.alloc(1),
      Buffer.from('text'),
      Buffer.alloc(5_000, 0xfe),
    ];
    for (const blob of blobs) await publish(broker.port, stream, blob, MEDIA_TYPES.binary);
    const expected = blobs.map((blob) => blob.toString('base64'));
    const subscription = await delivered(stream);
    assert.deepEqual(subscription.data, expected);
    assert.ok(subscription.events.every((event) => event.encoding === 'base64'));
    assert.match(subscription.text, /^encoding: base64$/m);
    const page = await readAll(broker.port, stream);
    assert.deepEqual(
      page.map(({ data, encoding }) => [data, encoding]),
      expected.map((data) => [data, 'base64']),
    );
  });

  it('3.1 a text event carries no encoding mark', async () => {
    const stream = freshStream('unmarked');
    await publish(broker.port, stream, 'dGV4dA==');
    assert.equal((await delivered(stream)).events[0]?.encoding, null);
    assert.ok(!('encoding' in ((await readAll(broker.port, stream))[0] ?? {})));
  });

  it('3.1 application/vnd.gapless.batch+json is an array of events; other values than strings become their JSON', async () => {
    const stream = freshStream('batch');
    const batch = [
      { data: 'text' },
      { type: 'update', data: { a: [1, 'x', null] } },
      { data: 7 },
      { data: null },
      { data: true },
      { data: '' },
      { type: 'message', data: 'line\r\nbreak' },
    ];
    const { first, last } = await publish(broker.port, stream, JSON.stringify(batch), MEDIA_TYPES.batch);
    assert.deepEqual([first, last], [1, batch.length]);
    const { events } = await delivered(stream);
    assert.deepEqual(
      events.map(({ type, data }) => [type, data]),
      [
        ['message', 'text'],
        ['update', '{"a":[1,"x",null]}'],
        ['message', '7'],
        ['message', 'null'],
        ['message', 'true'],
        ['message', ''],
        ['message', 'line\nbreak'],
      ],
    );
  });

  it('3.1 application/msgpack is the same with bytes as binary events', async () => {
    const stream = freshStream('msgpack');
    const batch = [
      { data: 'text' },
      { type: 'blob', data: Buffer.from([1, 2, 255]) },
      { data: { a: 1 } },
      { data: [2, 'b'] },
    ];
    await publish(broker.port, stream, pack(batch), MEDIA_TYPES.msgpack);
    const { events } = await delivered(stream);
    assert.deepEqual(
      events.map(({ type, data, encoding }) => [type, data, encoding]),
      [
        ['message', 'text', null],
        ['blob', 'AQL/', 'base64'],
        ['message', '{"a":1}', null],
        ['message', '[2,"b"]', null],
      ],
    );
  });

  it('3.1 an empty batch is 400 empty_batch', async () => {
    await refuse('', MEDIA_TYPES.ndjson, 400, 'empty_batch');
    await refuse('\n\r\n\n', MEDIA_TYPES.ndjson, 400, 'empty_batch');
    await refuse('[]', MEDIA_TYPES.batch, 400, 'empty_batch');
    await refuse(pack([]), MEDIA_TYPES.msgpack, 400, 'empty_batch');
  });

  it('3.1 text that is not UTF-8 is 400 invalid_utf8', async () => {
    const invalid = [
      [0xff],
      [0xc3],
      [0xed, 0xa0, 0x80],
      [0xc0, 0xaf],
      [0xf4, 0x90, 0x80, 0x80],
      [0x61, 0x80, 0x62],
    ];
    for (const bytes of invalid) await refuse(Buffer.from(bytes), MEDIA_TYPES.text, 400, 'invalid_utf8');
    await refuse(Buffer.from([0x22, 0xff, 0x22]), MEDIA_TYPES.json, 400, 'invalid_utf8');
    await refuse(Buffer.from('[{"data":"\xff"}]', 'latin1'), MEDIA_TYPES.batch, 400, 'invalid_utf8');
  });

  it('3.1 a batch is atomic: one bad event and none is appended', async () => {
    await refuse(Buffer.from('good\n\xff\ngood\n', 'latin1'), MEDIA_TYPES.ndjson, 400, 'invalid_utf8');
    await refuse(
      '[{"data":"good"},{"type":"stream_closed","data":"x"}]',
      MEDIA_TYPES.batch,
      400,
      'reserved_type',
    );
    await refuse(
      '[{"data":"good"},{"type":"a\\nb","data":"x"}]',
      MEDIA_TYPES.batch,
      400,
      'invalid_event_type',
    );
    await refuse('[{"data":"good"},{}]', MEDIA_TYPES.batch, 400, 'invalid_body');
    await refuse('[{"data":"good"},7]', MEDIA_TYPES.batch, 400, 'invalid_body');
  });

  it('3.1 a batch that cannot be read is 400 invalid_body', async () => {
    for (const body of ['', '{', '{"data":"x"}', '"x"', 'null', '[[]]', '[{"data":"x","type":7}]']) {
      await refuse(body, MEDIA_TYPES.batch, 400, 'invalid_body');
    }
    const packed = pack([{ data: 'text' }]);
    for (const body of [
      Buffer.alloc(0),
      packed.subarray(0, packed.length - 2),
      pack({ data: 'x' }),
      Buffer.from([0xc1]),
    ]) {
      await refuse(body, MEDIA_TYPES.msgpack, 400, 'invalid_body');
    }
  });

  it('3.1 a refused publish does not create its stream', async () => {
    for (const [body, contentType] of [
      [Buffer.from([0xff]), MEDIA_TYPES.text],
      ['', MEDIA_TYPES.ndjson],
      ['{', MEDIA_TYPES.batch],
      ['x', 'text/html'],
    ] as const) {
      const stream = freshStream('uncreated');
      assert.ok((await request(broker.port, publishRequest(stream, body, contentType))).status >= 400);
      const state = await request(broker.port, { path: `/v1/streams/${stream}/state` });
      assertProblem(state, 404, 'stream_not_found');
    }
  });

  it('3.1 an unknown content type is 415 unsupported_type', async () => {
    for (const contentType of [
      'text/html',
      'application/xml',
      'multipart/form-data; boundary=x',
      'nonsense',
      'text/',
    ]) {
      await refuse('x', contentType, 415, 'unsupported_type');
    }
  });

  it('3.1 the events of a batch have consecutive seqs although others publish at the same time', async () => {
    const stream = freshStream('atomic');
    const batches = await Promise.all(
      range(1, 40).map((batch) =>
        publishLines(
          broker.port,
          stream,
          range(1, 25).map((line) => `${batch}/${line}`),
        ),
      ),
    );
    const events = await readAll(broker.port, stream);
    assert.equal(events.length, 1_000);
    for (const [index, { first, last }] of batches.entries()) {
      assert.equal(last - first, 24);
      const data = events.slice(first - 1, last).map((event) => event.data);
      assert.deepEqual(
        data,
        range(1, 25).map((line) => `${index + 1}/${line}`),
      );
    }
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { withDeadline } from '../support/deadline.js';
import {
  freshStream,
  MEDIA_TYPES,
  publishLines,
  publishRequest,
  stateOf,
} from '../support/gapless-client.js';
import { encodeRequest, exchangeRaw, HttpConnection, type HttpRequest, request } from '../support/http.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { SseSubscription } from '../support/sse-client.js';
import { Witness } from '../support/witness.js';

const GARBAGE_REQUESTS = 4_000;
const PARALLEL = 16;
/** Not implemented, and HTTP of a version that is not spoken. */
const UNSUPPORTED = [501, 505];
const HOSTILE_CHARS = [
  '\0',
  '\r',
  '\n',
  '\r\n',
  '%00',
  '%',
  '..',
  '/',
  '?',
  '#',
  '\xff',
  '\x7f',
  ' ',
  ':',
  '',
  '9'.repeat(400),
];

describeOnEdges('bad input', [], (broker) => {
  it('thousands of garbage requests change nothing for others', async (context) => {
    const prng = seededPrng(context);
    const watched = await Witness.start(broker);
    const playground = freshStream('playground');
    await Promise.all(
      range(1, PARALLEL).map(async () => {
        for (let sent = 0; sent < GARBAGE_REQUESTS / PARALLEL; sent++) {
          const response = await exchangeRaw(broker.port, garbage(prng, playground), { end: true });
          // Which refusal it is matters little here; that the broker failed would.
          const { status = 0, text = '' } = response ?? {};
          assert.ok(status < 500 || UNSUPPORTED.includes(status), `${status} ${text}`);
        }
      }),
    );
    await watched.end();
  });

  it('no header can inject a line into a frame or an answer', async () => {
    const watched = await Witness.start(broker);
    const stream = freshStream('header');
    for (const value of ['a\rdata: forged', 'a\nX-Injected: 1', 'a\0b', '\r\r', 'é\u00a0', 'a\tb']) {
      const asked = publishRequest(stream, 'x', MEDIA_TYPES.text, { 'Gapless-Event': value });
      const response = await exchangeRaw(broker.port, encodeRequest(asked), { end: true });
      assert.equal(response?.header('x-injected'), undefined);
    }
    const published = await request(broker.port, publishRequest(stream, 'last'));
    const subscription = await SseSubscription.open(broker.port, stream, {
      cursor: 'earliest',
      keepText: true,
    });
    await subscription.untilSeq(published.json<{ last: number }>().last);
    assert.ok(!subscription.data.includes('forged'));
    assert.deepEqual(subscription.linesWithoutColon, []);
    assert.ok(!/[\r\0]/.test(subscription.text));
    subscription.cut();
    await watched.end();
  });

  for (const [name, finish] of [
    ['closed in the middle', (connection: HttpConnection) => connection.end()],
    ['reset in the middle', (connection: HttpConnection) => connection.destroy({ reset: true })],
  ] as const) {
    it(`a body that is ${name} appends nothing`, async () => {
      const watched = await Witness.start(broker);
      const stream = freshStream('half');
      const { epoch } = await publishLines(broker.port, stream, ['before']);
      for (const contentType of [
        MEDIA_TYPES.text,
        MEDIA_TYPES.ndjson,
        MEDIA_TYPES.batch,
        MEDIA_TYPES.binary,
      ]) {
        const whole = encodeRequest(
          publishRequest(stream, '[{"data":"half"}]\n'.repeat(20_000), contentType),
        );
        const connection = await HttpConnection.open(broker.port);
        await new Promise((resolve) => connection.socket.write(whole.subarray(0, whole.length / 2), resolve));
        finish(connection);
        await connection.closed;
      }
      const state = await stateOf(broker.port, stream);
      assert.deepEqual([state.epoch, state.head], [epoch, 1]);
      await watched.end();
    });
  }

  it('two hundred bodies that never end hold up no one, and are given up after a while', async () => {
    const watched = await Witness.start(broker);
    const stream = freshStream('silent');
    const { epoch } = await publishLines(broker.port, stream, ['before']);
    const whole = encodeRequest(publishRequest(stream, 'half'.repeat(1_000)));
    const silent = await Promise.all(range(1, 200).map(() => HttpConnection.open(broker.port)));
    for (const connection of silent) connection.send(whole.subarray(0, whole.length / 2));
    await publishLines(broker.port, stream, ['meanwhile']);
    await watched.end();
    await withDeadline(
      'the silent bodies to be given up',
      Promise.all(silent.map(({ closed }) => closed)),
      60_000,
    );
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.head], [epoch, 2]);
  });

  it('hostile cursors are refused, each with 400 or 410, and none gets an event', async () => {
    const watched = await Witness.start(broker);
    const stream = freshStream('cursors');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two', 'three']);
    const seqs = [
      '-0',
      '+3',
      '3.0',
      '03',
      '3e0',
      '0b1',
      ' 3',
      '3 ',
      '٣',
      '9007199254740993',
      '1e999',
      'NaN',
      'Infinity',
      '__proto__',
    ];
    for (const seq of seqs) {
      for (const cursor of [
        `${epoch}.${seq}`,
        `${epoch}..${seq}`,
        `.${seq}`,
        seq,
        cursorOf(`${epoch}${seq}`, 3),
      ]) {
        const asked: HttpRequest = {
          path: `/v1/streams/${stream}`,
          headers: { Accept: 'text/event-stream', 'Last-Event-ID': cursor },
        };
        // HTTP takes the blanks around a header's value away before anybody sees it (RFC 9110, 5.5).
        if (cursor.trim() === cursorOf(epoch, 3)) continue;
        const response = await request(broker.port, asked);
        assert.ok(
          response.status === 400 || response.status === 410,
          `${JSON.stringify(cursor)}: ${response.status}`,
        );
      }
    }
    await watched.end();
  });
});

/** A request that is broken somewhere: random bytes, or a good request with hostile bytes in it or cut short. */
function garbage(prng: Prng, stream: string): Buffer {
  if (prng.chance(0.15)) return prng.bytes(prng.between(1, 400));
  const good = encodeRequest(prng.pick(goodRequests(stream)));
  if (prng.chance(0.2)) return good.subarray(0, prng.below(good.length));
  const pieces = [good];
  for (let count = prng.between(1, 4); count > 0; count--) {
    const at = prng.below(good.length);
    const bytes = prng.chance(0.5)
      ? Buffer.from(prng.pick(HOSTILE_CHARS), 'latin1')
      : prng.bytes(prng.between(1, 4));
    const whole = Buffer.concat(pieces.splice(0));
    pieces.push(whole.subarray(0, at), bytes, whole.subarray(prng.chance(0.5) ? at : at + bytes.length));
  }
  return Buffer.concat(pieces);
}

function goodRequests(stream: string): HttpRequest[] {
  const path = `/v1/streams/${stream}`;
  return [
    publishRequest(stream, 'text', MEDIA_TYPES.text, { 'Gapless-Event': 'typed' }),
    publishRequest(stream, '{"n":1}\n{"n":2}\n', MEDIA_TYPES.ndjson),
    publishRequest(stream, '[{"type":"a","data":{"b":[1,2]}}]', MEDIA_TYPES.batch),
    publishRequest(
      stream,
      Buffer.from([0x91, 0x81, 0xa4, 0x64, 0x61, 0x74, 0x61, 0x01]),
      MEDIA_TYPES.msgpack,
    ),
    { path: `${path}?cursor=earliest&limit=10&wait=0`, headers: { Accept: 'application/json' } },
    { path: `${path}?cursor=abcdefghij.3`, headers: { Accept: 'text/event-stream' } },
    { method: 'PUT', path, body: '{"retention":{"events":10}}' },
    { method: 'DELETE', path },
    { method: 'HEAD', path },
    { path: `${path}/state` },
    { path: '/v1/streams?prefix=play&limit=5' },
  ];
}

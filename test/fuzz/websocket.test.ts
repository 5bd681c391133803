import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { pack } from 'msgpackr';
import { decodeClientMessage } from '#gapless/wire/client-message.js';
import { useBroker } from '../support/broker-process.js';
import { freshStream, publish } from '../support/gapless-client.js';
import { LiveSocket } from '../support/websocket-client.js';
import { fuzz } from './fuzz.js';
import { mutate, mutations } from './mutation.js';
import { refusal } from './refusal.js';

/** What a peer may say (contract 5.5). */
const MESSAGES: Readonly<Record<string, unknown>>[] = [
  { kind: 'ack', cursor: 'abcdefgh01.3', ref: 7 },
  { kind: 'publish', ref: 'r', events: [{ data: 'text' }, { type: 'tick', data: { a: [1, null, 'ä'] } }] },
  { kind: 'publish', events: [], producerId: 'a', producerEpoch: 0, producerSeq: 3, ifHead: 'abcdefgh01.3' },
  { kind: 'publish', events: [{ data: '' }], idempotencyKey: 'key' },
];

/** One frame of a client (RFC 6455, 5.2), whole and masked. */
function frameOf(opcode: number, payload: Uint8Array): Buffer {
  const mask = randomBytes(4);
  const length = Buffer.alloc(payload.length < 126 ? 2 : 4);
  length[0] = 0x80 | opcode;
  length[1] = 0x80 | Math.min(payload.length, 126);
  if (payload.length >= 126) length.writeUInt16BE(payload.length, 2);
  return Buffer.concat([length, mask, payload.map((byte, index) => byte ^ (mask[index & 3] as number))]);
}

describe('what comes on a WebSocket, changed anywhere', () => {
  for (const [format, bytesOf] of [
    ['json', (message: unknown) => Buffer.from(JSON.stringify(message))],
    ['msgpack', (message: unknown) => pack(message)],
  ] as const) {
    it(`5.5 a message in ${format}: is read, or refused with a code of the table`, (context) => {
      const inputs = fc.tuple(fc.constantFrom(...MESSAGES), mutations(4));
      return fuzz(context, inputs, ([message, changes]) => {
        const bytes = mutate(bytesOf(message), changes);
        refusal(() => {
          const { ref, members } = decodeClientMessage(format, bytes);
          assert.ok(ref === null || typeof ref === 'string' || Number.isSafeInteger(ref));
          const events = members.get('events');
          assert.ok(events === undefined || events instanceof Uint8Array);
        });
      });
    });
  }

  const broker = useBroker();

  it('5 frames, in any pieces: nobody else is touched, and nothing is appended that was not whole', async (context) => {
    const stream = freshStream('frames');
    const other = freshStream('other');
    const watching = await LiveSocket.open(broker.port, other);
    const handshake = [
      `GET /v1/streams/${stream} HTTP/1.1`,
      'Host: x',
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    ].join('\r\n');
    const frames = fc.record({
      opcode: fc.integer({ min: 0, max: 15 }),
      message: fc.constantFrom(...MESSAGES),
      changes: mutations(3),
      pieces: fc.array(fc.nat(200), { maxLength: 4 }),
      hasPayloadChanged: fc.boolean(),
    });
    let inputs = 0;
    await fuzz(context, frames, async ({ opcode, message, changes, pieces, hasPayloadChanged }) => {
      const payload = Buffer.from(JSON.stringify(message));
      const bytes = hasPayloadChanged
        ? frameOf(opcode, mutate(payload, changes))
        : mutate(frameOf(1, payload), changes);
      await sendInPieces(broker.port, Buffer.concat([Buffer.from(`${handshake}\r\n\r\n`), bytes]), pieces);
      if (++inputs % 20 === 0) await publish(broker.port, other, String(inputs));
    });
    await publish(broker.port, other, 'last');
    await watching.until('the last event', () => watching.data.at(-1) === 'last');
    assert.ok(!watching.isClosed);
    watching.cut();
  });
});

/** On a connection of its own, which is ended then; resolves when it is over. */
function sendInPieces(port: number, bytes: Uint8Array, lengths: readonly number[]): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.resume();
    let at = 0;
    for (const length of [...lengths, bytes.length]) {
      socket.write(bytes.subarray(at, at + length));
      at += length;
    }
    // Long enough for an answer, and for what was sent to be read.
    socket.once('data', () => setImmediate(() => socket.resetAndDestroy()));
  });
}

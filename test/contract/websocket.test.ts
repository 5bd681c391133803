import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { scrape, total } from '../support/prometheus.js';
import { LiveSocket } from '../support/websocket-client.js';

const JSON_PROTOCOL = 'gapless.json.v1';
const MSGPACK_PROTOCOL = 'gapless.msgpack.v1';

describeOnEdges('5 a WebSocket', [], (broker) => {
  async function filled(word: string, events = 6): Promise<{ stream: string; epoch: string }> {
    const stream = freshStream(word);
    const lines = range(1, events).map((seq) => `event ${seq}`);
    const { epoch } = await publishLines(broker.port, stream, lines);
    return { stream, epoch };
  }

  it('5 it opens with its position, and then gives what is published, in order (I1)', async () => {
    const { stream, epoch } = await filled('live');
    const socket = await LiveSocket.open(broker.port, stream, { protocols: [JSON_PROTOCOL] });
    assert.equal(socket.protocol, JSON_PROTOCOL);
    assert.deepEqual(socket.messages, [
      { kind: 'open', cursor: cursorOf(epoch, 6), epoch, floor: 1, head: 6 },
    ]);
    for (const seq of range(7, 40)) await publish(broker.port, stream, `event ${seq}`);
    await socket.untilSeq(40);
    assert.deepEqual(socket.seqs, range(7, 40));
    assert.deepEqual(socket.events[0], { id: cursorOf(epoch, 7), type: 'message', data: 'event 7' });
    socket.cut();
  });

  it('5 it resumes by the same cursors: ?cursor=, a word, and Last-Event-ID over both (I2)', async () => {
    const { stream, epoch } = await filled('resume');
    for (const [options, first] of [
      [{ cursor: cursorOf(epoch, 4) }, 5],
      [{ cursor: 'earliest' }, 1],
      [{ cursor: 'earliest', headers: { 'Last-Event-ID': cursorOf(epoch, 5) } }, 6],
    ] as const) {
      const socket = await LiveSocket.open(broker.port, stream, options);
      await socket.untilSeq(6);
      assert.deepEqual(socket.seqs, range(first, 6));
      assert.equal(socket.ofKind('open')[0]?.cursor, cursorOf(epoch, first - 1));
      socket.cut();
    }
  });

  it('5 a reader that is cut again and again and comes back with its last id has everything once (I2)', async () => {
    const { stream, epoch } = await filled('again', 500);
    const seen: number[] = [];
    let cursor = 'earliest';
    for (const round of range(1, 40)) {
      const socket = await LiveSocket.open(broker.port, stream, { cursor });
      await publish(broker.port, stream, `more ${round}`);
      await socket.untilEvents(1);
      socket.cut();
      seen.push(...socket.seqs);
      cursor = cursorOf(epoch, seen.at(-1) ?? 0);
    }
    assert.deepEqual(seen, range(1, seen.length));
    assert.ok(seen.length > 500);
  });

  it('5 types and binary data, as JSON text and as MessagePack with bytes', async () => {
    const stream = freshStream('formats');
    await publish(broker.port, stream, 'a\nb', MEDIA_TYPES.text, { 'Gapless-Event': 'tick' });
    await publish(broker.port, stream, Buffer.from([0, 255, 10]), MEDIA_TYPES.binary);
    const json = await LiveSocket.open(broker.port, stream, { cursor: 'earliest' });
    const packed = await LiveSocket.open(broker.port, stream, {
      cursor: 'earliest',
      protocols: ['else', MSGPACK_PROTOCOL],
    });
    assert.deepEqual([json.protocol, packed.protocol], ['', MSGPACK_PROTOCOL]);
    await Promise.all([json.untilEvents(2), packed.untilEvents(2)]);
    const { epoch } = await stateOf(broker.port, stream);
    const tick = { id: cursorOf(epoch, 1), type: 'tick', data: 'a\nb' };
    const binary = { id: cursorOf(epoch, 2), type: 'message' };
    assert.deepEqual(json.events, [tick, { ...binary, data: 'AP8K', encoding: 'base64' }]);
    assert.deepEqual(packed.events, [tick, { ...binary, data: Buffer.from([0, 255, 10]) }]);
    json.cut();
    packed.cut();
  });

  it('5 ?types= leaves out the others', async () => {
    const stream = freshStream('types');
    for (const seq of range(1, 9)) {
      await publish(broker.port, stream, String(seq), MEDIA_TYPES.text, {
        'Gapless-Event': seq % 3 === 0 ? 'tick' : 'tock',
      });
    }
    const socket = await LiveSocket.open(broker.port, stream, { cursor: 'earliest', query: 'types=tick' });
    await socket.untilEvents(3);
    assert.deepEqual(socket.data, ['3', '6', '9']);
    socket.cut();
  });

  it('5 a refused resume is an error message with the JSON of a 410, and close code 4410 (I2)', async () => {
    const stream = freshStream('evicted');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 20).map(String));
    const cursor = cursorOf(epoch, 1);
    const socket = LiveSocket.connect(broker.port, stream, { cursor });
    assert.equal(await socket.untilClosed(), 4410);
    assert.equal(socket.closeReason, 'resume_unavailable');
    const plain = await request(broker.port, {
      path: `/v1/streams/${stream}?cursor=${cursor}`,
      headers: { Accept: 'text/event-stream' },
    });
    assert.deepEqual(socket.messages, [
      { kind: 'error', ...assertProblem(plain, 410, 'resume_unavailable') },
    ]);
  });

  it('5 every reason has its code: 4400 malformed, 4410 for another epoch and for a stream that is not there', async () => {
    const { stream, epoch } = await filled('reasons');
    for (const [cursor, code, reason] of [
      ['nonsense', 4400, 'malformed'],
      ['zzzzzzzzzz.3', 4410, 'epoch_changed'],
      [cursorOf(epoch, 7), 4410, 'ahead_of_head'],
    ] as const) {
      const socket = LiveSocket.connect(broker.port, stream, { cursor });
      assert.equal(await socket.untilClosed(), code);
      assert.deepEqual([socket.messages.length, socket.messages[0]?.reason], [1, reason]);
    }
    const nowhere = freshStream('nowhere');
    const socket = LiveSocket.connect(broker.port, nowhere, { cursor: 'zzzzzzzzzz.3' });
    assert.equal(await socket.untilClosed(), 4410);
    assert.deepEqual([socket.messages[0]?.reason, socket.messages[0]?.epoch], ['epoch_changed', null]);
    assert.equal((await request(broker.port, { path: `/v1/streams/${nowhere}/state` })).status, 404);
  });

  it('5 a bad name and a bad query are told by message and close code too', async () => {
    const stream = freshStream('bad');
    for (const [name, query, code] of [
      ['%20', '', 'invalid_stream_name'],
      [stream, 'types=', 'invalid_query'],
      [stream, 'cursor=a&cursor=b', 'invalid_query'],
    ] as const) {
      const socket = LiveSocket.connect(broker.port, name, { query });
      assert.equal(await socket.untilClosed(), 4400);
      assert.equal(socket.closeReason, code);
    }
  });

  it('5 a stream that is closed, or deleted, is told by a message, and then by close code 1000', async () => {
    const closed = await filled('closed');
    const deleted = await filled('deleted');
    const ofClosed = await LiveSocket.open(broker.port, closed.stream, { cursor: 'earliest' });
    const ofDeleted = await LiveSocket.open(broker.port, deleted.stream, { cursor: 'earliest' });
    await Promise.all([ofClosed.untilSeq(6), ofDeleted.untilSeq(6)]);
    await closeStream(broker.port, closed.stream);
    await deleteStream(broker.port, deleted.stream);
    assert.deepEqual([await ofClosed.untilClosed(), await ofDeleted.untilClosed()], [1000, 1000]);
    assert.deepEqual(ofClosed.messages.at(-1), { kind: 'closed', cursor: cursorOf(closed.epoch, 6) });
    assert.deepEqual(ofDeleted.messages.at(-1), { kind: 'deleted', cursor: cursorOf(deleted.epoch, 6) });
    const late = LiveSocket.connect(broker.port, closed.stream, {});
    assert.equal(await late.untilClosed(), 1000);
    assert.deepEqual(late.messages, [{ kind: 'closed', cursor: cursorOf(closed.epoch, 6) }]);
  });

  it('5 a reader that stalls goes on from where its socket stopped (I1, I7)', async () => {
    const stream = freshStream('stalled');
    await createStream(broker.port, stream, { retention: { bytes: 24 * 1024 * 1024 } });
    const socket = await LiveSocket.open(broker.port, stream);
    socket.stall();
    const connection = await HttpConnection.open(broker.port);
    const lines = range(1, 4).map(() => 'x'.repeat(64 * 1024));
    for (const _ of range(1, 64)) await publishLines(connection, stream, lines);
    connection.destroy();
    socket.unstall();
    await socket.untilSeq(256);
    assert.deepEqual(socket.seqs, range(1, 256));
    socket.cut();
  });

  it('5 a reader that eviction overtakes is told, and closed with 4410 (I2)', async () => {
    const stream = freshStream('overtaken');
    await createStream(broker.port, stream, { retention: { bytes: 512 * 1024 } });
    const socket = await LiveSocket.open(broker.port, stream);
    socket.stall();
    const connection = await HttpConnection.open(broker.port);
    const lines = range(1, 8).map(() => 'x'.repeat(32 * 1024));
    for (const _ of range(1, 120)) await publishLines(connection, stream, lines);
    connection.destroy();
    socket.unstall();
    assert.equal(await socket.untilClosed(), 4410);
    assert.deepEqual(socket.seqs, range(1, socket.seqs.length));
    const refusal = socket.messages.at(-1);
    assert.deepEqual([refusal?.reason, seqOf(String(refusal?.cursor))], ['evicted', socket.seqs.length]);
  });

  it('5 connections and subscribers are counted, and no longer when they are gone', async () => {
    const { stream } = await filled('counted');
    const before = total(await scrape(broker.port), 'gapless_connections');
    const sockets = await Promise.all(range(1, 20).map(() => LiveSocket.open(broker.port, stream)));
    // Those that other tests have cut may be noticed a moment later.
    await eventually('these to be counted', async () => {
      return total(await scrape(broker.port), 'gapless_websockets') === 20;
    });
    assert.equal((await stateOf(broker.port, stream)).subscribers, 20);
    for (const socket of sockets.slice(0, 10)) socket.cut();
    for (const socket of sockets.slice(10)) socket.end();
    await eventually('all to be gone', async () => {
      const now = await scrape(broker.port);
      const { subscribers } = await stateOf(broker.port, stream);
      const isGone = total(now, 'gapless_websockets') === 0 && subscribers === 0;
      return isGone && total(now, 'gapless_connections') <= before;
    });
  });
});

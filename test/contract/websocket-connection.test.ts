import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BrokerProcess, useBroker } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { assertProblem, freshStream, publish, publishLines } from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { LiveSocket } from '../support/websocket-client.js';

describe('5 the handshake', () => {
  const origin = 'https://app.example';
  const broker = useBroker('--cors-origins', origin, '--connections-max', '40');

  it('5 an origin that is not allowed is 403, and one that is, or is the server itself, or none, is not', async () => {
    const stream = freshStream('origin');
    const refused = LiveSocket.connect(broker.port, stream, { headers: { Origin: 'https://evil.example' } });
    const { status, body } = await refused.untilRefused();
    assert.deepEqual([status, JSON.parse(body).code], [403, 'origin_not_allowed']);
    for (const headers of [{ Origin: origin }, { Origin: `http://127.0.0.1:${broker.port}` }, {}]) {
      (await LiveSocket.open(broker.port, stream, { headers })).cut();
    }
  });

  it('5 an unknown subprotocol is 400 with those that are known', async () => {
    const socket = LiveSocket.connect(broker.port, freshStream('protocol'), {
      protocols: ['gapless.json.v9'],
    });
    const { status, body } = await socket.untilRefused();
    assert.deepEqual([status, JSON.parse(body).code], [400, 'invalid_handshake']);
    assert.deepEqual(JSON.parse(body).supported, ['gapless.json.v1', 'gapless.msgpack.v1']);
  });

  it('5 a request to upgrade that is no handshake is 400, and another protocol is left alone', async () => {
    const path = `/v1/streams/${freshStream('upgrade')}`;
    await publish(broker.port, path.slice('/v1/streams/'.length), 'one');
    const key = { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
    for (const headers of [
      { Connection: 'Upgrade', Upgrade: 'websocket' },
      { Connection: 'Upgrade', Upgrade: 'websocket', ...key, 'Sec-WebSocket-Version': '8' },
      { ...key, 'Sec-WebSocket-Version': '13' },
    ]) {
      const response = await request(broker.port, { path, headers });
      assertProblem(response, 400, 'invalid_handshake');
      assert.equal(response.header('sec-websocket-version'), '13');
    }
    const h2c = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': '' };
    assert.equal((await request(broker.port, { path, headers: h2c })).status, 200);
  });

  it('5 too many connections are 503', async () => {
    const stream = freshStream('many');
    const sockets = range(1, 60).map(() => LiveSocket.connect(broker.port, stream));
    await Promise.all(
      sockets.map((socket) =>
        socket.until('an answer', () => socket.refusal !== undefined || socket.messages.length > 0),
      ),
    );
    const refused = sockets.filter(({ refusal }) => refusal !== undefined);
    assert.ok(refused.length >= 20 && refused.every(({ refusal }) => refusal?.status === 503));
    for (const socket of sockets) socket.cut();
  });
});

describe('5 signs of life', () => {
  const broker = useBroker('--heartbeat-interval-ms', '50');

  it('5 the broker pings with the cursor, under load too', async () => {
    const stream = freshStream('ping');
    const { epoch } = await publish(broker.port, stream, 'one');
    const socket = await LiveSocket.open(broker.port, stream);
    await socket.until('two pings', () => socket.pings.length >= 2);
    assert.deepEqual(new Set(socket.pings), new Set([cursorOf(epoch, 1)]));
    const idle = socket.pings.length;
    const connection = await HttpConnection.open(broker.port);
    while (socket.pings.length < idle + 3) await publish(connection, stream, 'more');
    connection.destroy();
    const named = socket.pings.map(seqOf);
    assert.deepEqual(
      named,
      named.toSorted((a, b) => a - b),
    );
    assert.ok((named.at(-1) ?? 0) > 1);
    socket.cut();
  });

  it('4.9 what a filter leaves out is passed over with a position', async () => {
    const stream = freshStream('position');
    const socket = await LiveSocket.open(broker.port, stream, { query: 'types=tick' });
    const { epoch } = await publishLines(broker.port, stream, ['a', 'b', 'c']);
    const last = cursorOf(epoch, 3);
    await socket.until('the position', () => socket.messages.at(-1)?.cursor === last);
    assert.deepEqual(socket.messages.at(-1), { kind: 'position', cursor: last });
    assert.equal(socket.events.length, 0);
    socket.cut();
  });

  it('5 a peer that answers no ping is taken for dead, and one that does stays', async () => {
    const stream = freshStream('dead');
    const alive = await LiveSocket.open(broker.port, stream);
    const dead = await LiveSocket.open(broker.port, stream, { answersPings: false });
    assert.equal(await dead.untilClosed(), 1006);
    assert.ok(!alive.isClosed);
    const { last } = await publish(broker.port, stream, 'still here');
    await alive.untilSeq(last);
    alive.cut();
  });

  it('5 one that makes the broker answer and does not read is cut off (I7)', async () => {
    const socket = await LiveSocket.open(broker.port, freshStream('pings'));
    socket.stall();
    const before = await broker.process.residentBytes();
    const payload = 'x'.repeat(125);
    const closed = socket.untilClosed();
    for (let sent = 0; !socket.isClosed && sent < 400_000; sent++) {
      socket.ping(payload);
      if (sent % 1000 === 0) await new Promise(setImmediate);
    }
    socket.unstall();
    await closed;
    assert.ok((await broker.process.residentBytes()) - before < 32 * 1024 * 1024);
  });
});

describe('10 draining', () => {
  it('10 a WebSocket is told when to come back, and closed with 1012; new ones are 503', async () => {
    const broker = await BrokerProcess.start('--drain-ms', '3s');
    const stream = freshStream('drained');
    const sockets = await Promise.all(range(1, 30).map(() => LiveSocket.open(broker.port, stream)));
    await publishLines(broker.port, stream, ['one', 'two']);
    await Promise.all(sockets.map((socket) => socket.untilSeq(2)));
    broker.signal('SIGTERM');
    await eventually('the broker to drain', async () => {
      return (await request(broker.port, { path: '/readyz' })).status === 503;
    });
    const late = LiveSocket.connect(broker.port, stream);
    assert.equal((await late.untilRefused()).status, 503);
    for (const socket of sockets) {
      assert.equal(await socket.untilClosed(), 1012);
      assert.equal(socket.messages.at(-1)?.kind, 'draining');
      assert.ok(Number(socket.messages.at(-1)?.retryMs) > 0);
    }
    assert.deepEqual(await broker.untilExit(), { code: 0, signal: null });
    assert.deepEqual(broker.errors, []);
  });
});

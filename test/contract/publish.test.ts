import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, positionOf, range } from '../support/cursor.js';
import {
  assertProblem,
  freshStream,
  MEDIA_TYPES,
  publish,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

describeOnEdges('3.2 event types', [], (broker) => {
  const RESERVED = ['stream_closed', 'stream_deleted', 'resume_unavailable'];

  it('3.2 Gapless-Event sets the type of every event of the body', async () => {
    const stream = freshStream('type');
    await publish(broker.port, stream, 'a', MEDIA_TYPES.text, { 'Gapless-Event': 'user.joined' });
    await publish(broker.port, stream, 'b\nc', MEDIA_TYPES.ndjson, { 'Gapless-Event': 'x y:z' });
    await publish(broker.port, stream, 'd');
    const subscription = await SseSubscription.open(broker.port, stream, { cursor: 'earliest' });
    const events = await subscription.untilEvents(4);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['user.joined', 'x y:z', 'x y:z', 'message'],
    );
    subscription.cut();
  });

  it('3.2 a type of 128 bytes is taken, one of 129 is 400 invalid_event_type', async () => {
    const stream = freshStream('length');
    const long = 't'.repeat(128);
    await publish(broker.port, stream, 'x', MEDIA_TYPES.text, { 'Gapless-Event': long });
    const batchOf = (type: string) => JSON.stringify([{ type, data: 'x' }]);
    await publish(broker.port, stream, batchOf('é'.repeat(64)), MEDIA_TYPES.batch);
    const header = { 'Gapless-Event': `${long}t` };
    const tooLong = [
      publishRequest(stream, 'x', MEDIA_TYPES.text, header),
      publishRequest(stream, batchOf(`${long}t`), MEDIA_TYPES.batch),
      publishRequest(stream, batchOf(`${'é'.repeat(64)}x`), MEDIA_TYPES.batch),
    ];
    for (const asked of tooLong) assertProblem(await request(broker.port, asked), 400, 'invalid_event_type');
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ type }) => type),
      [long, 'é'.repeat(64)],
    );
  });

  it('3.2 CR, LF and NUL in a type are 400 invalid_event_type: no line can be injected', async () => {
    const stream = freshStream('inject');
    await publish(broker.port, stream, 'before');
    for (const char of ['\r', '\n', '\0', '\r\n']) {
      const body = JSON.stringify([{ type: `a${char}data: forged`, data: 'x' }]);
      const asked = publishRequest(stream, body, MEDIA_TYPES.batch);
      assertProblem(await request(broker.port, asked), 400, 'invalid_event_type');
    }
    assert.equal((await stateOf(broker.port, stream)).head, 1);
  });

  it("3.2 the server's own words are 400 reserved_type", async () => {
    const stream = freshStream('reserved');
    for (const type of RESERVED) {
      const inHeader = publishRequest(stream, 'x', MEDIA_TYPES.text, { 'Gapless-Event': type });
      const inBatch = publishRequest(stream, JSON.stringify([{ type, data: 'x' }]), MEDIA_TYPES.batch);
      for (const asked of [inHeader, inBatch])
        assertProblem(await request(broker.port, asked), 400, 'reserved_type');
    }
    await publish(broker.port, stream, 'x', MEDIA_TYPES.text, { 'Gapless-Event': 'Stream_Closed' });
  });
});

describeOnEdges('3.3 the answer to a publish', [], (broker) => {
  it('3.3 it is 200 with epoch, first and last, and Gapless-Cursor is the last', async () => {
    const stream = freshStream('answer');
    const response = await request(broker.port, publishRequest(stream, 'a\nb\nc', MEDIA_TYPES.ndjson));
    assert.equal(response.status, 200);
    const { epoch, first, last, ...rest } = response.json<{ epoch: string; first: number; last: number }>();
    assert.deepEqual([first, last, rest], [1, 3, {}]);
    assert.equal(response.header('gapless-cursor'), cursorOf(epoch, 3));
    positionOf(cursorOf(epoch, 3));
  });

  it('3.3 what is acknowledged can be read at once, on any connection', async () => {
    const stream = freshStream('at-once');
    for (const seq of range(1, 60)) {
      const { epoch } = await publish(broker.port, stream, `event ${seq}`);
      const subscription = await SseSubscription.open(broker.port, stream, {
        lastEventId: cursorOf(epoch, seq - 1),
      });
      await subscription.untilEvents(1);
      assert.deepEqual(subscription.data, [`event ${seq}`]);
      subscription.cut();
      assert.equal((await stateOf(broker.port, stream)).committed, seq);
    }
  });

  it('3.3 pipelined publishes are answered in order and appended in order (I6)', async () => {
    const stream = freshStream('pipelined');
    const connection = await HttpConnection.open(broker.port);
    // The first creates the stream, for which the others cannot wait: it is sent alone.
    await publish(connection, stream, 'event 1');
    const asked = range(2, 50).map((index) => publishRequest(stream, `event ${index}`));
    const answers = await connection.pipeline(asked);
    assert.deepEqual(
      answers.map((answer) => answer.json<{ first: number }>().first),
      range(2, 50),
    );
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ data }) => data),
      range(1, 50).map((index) => `event ${index}`),
    );
    connection.destroy();
  });

  it('3.3 acknowledged before the other began means a smaller seq, across connections (I6)', async () => {
    const stream = freshStream('order');
    let before = 0;
    for (let round = 0; round < 100; round++) {
      const { first } = await publish(broker.port, stream, `round ${round}`);
      assert.ok(first > before);
      before = first;
    }
  });

  it('3.3 a body that comes in many pieces is one event', async () => {
    const stream = freshStream('pieces');
    const connection = await HttpConnection.open(broker.port);
    const text = range(1, 200).join(',');
    connection.send(
      `POST /v1/streams/${stream} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\n\r\n`,
    );
    for (let at = 0; at < text.length; at += 97) {
      await new Promise((resolve) => connection.socket.write(text.slice(at, at + 97), resolve));
    }
    assert.equal((await connection.nextResponse()).status, 200);
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ data }) => data),
      [text],
    );
    connection.destroy();
  });

  it('3.3 a chunked body is one event too', async () => {
    const stream = freshStream('chunked');
    const connection = await HttpConnection.open(broker.port);
    connection.send(
      `POST /v1/streams/${stream} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n`,
    );
    assert.equal((await connection.nextResponse()).status, 200);
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ data }) => data),
      ['hello, world'],
    );
    connection.destroy();
  });
});

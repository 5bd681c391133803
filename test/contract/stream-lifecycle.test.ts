import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { cursorOf, positionOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  assertProblem,
  closeStream,
  createStream,
  deleteStream,
  freshStream,
  publish,
  publishLines,
  publishRequest,
  putStream,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

describeOnEdges('2 streams', [], (broker) => {
  it('2.1 PUT creates a stream with 201, and answers 200 when it stands with the same configuration', async () => {
    const stream = freshStream('put');
    const config = { retention: { events: 10, bytes: 65_536, ageMs: 60_000 }, overflow: 'evict', ttlMs: 0 };
    assert.equal((await putStream(broker.port, stream, config)).status, 201);
    const { epoch } = await stateOf(broker.port, stream);
    assert.equal((await putStream(broker.port, stream, config)).status, 200);
    assert.equal((await stateOf(broker.port, stream)).epoch, epoch);
  });

  it('2.1 every field of the configuration is optional, and so is the body', async () => {
    for (const config of [{}, { retention: {} }, { retention: { events: 5 } }, { ttlMs: 60_000 }]) {
      await createStream(broker.port, freshStream('optional'), config);
    }
    const response = await request(broker.port, {
      method: 'PUT',
      path: `/v1/streams/${freshStream('bodyless')}`,
    });
    assert.equal(response.status, 201, response.text);
  });

  it('2.1 PUT with another configuration is 409 config_conflict and changes nothing', async () => {
    const stream = freshStream('conflict');
    await createStream(broker.port, stream, { retention: { events: 10 } });
    const { epoch } = await publish(broker.port, stream, 'kept');
    for (const other of [{ retention: { events: 11 } }, { retention: { events: 10 }, ttlMs: 1_000 }, {}]) {
      assertProblem(await putStream(broker.port, stream, other), 409, 'config_conflict');
    }
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.floor, state.head], [epoch, 1, 1]);
  });

  it('2.1 a configuration that is not one is 400 and creates nothing', async () => {
    const configs = [
      { retention: { events: -1 } },
      { retention: { events: 1.5 } },
      { retention: { bytes: '64KiB' } },
      { retention: 7 },
      { overflow: 'drop' },
      { ttlMs: -5 },
      { unheardOf: true },
      [],
    ];
    const stream = freshStream('invalid');
    for (const config of configs) {
      assertProblem(await putStream(broker.port, stream, config), 400, 'invalid_config');
    }
    const several = { retention: { ageMs: 999, bytes: 2 ** 50 }, ttlMs: -5 };
    const { problems } = assertProblem(await putStream(broker.port, stream, several), 400, 'invalid_config');
    assert.deepEqual(
      (problems as { field: string }[]).map(({ field }) => field),
      ['ttlMs', 'retention.bytes', 'retention.ageMs'],
    );
    for (const body of ['{', 'null', '"text"', '\xff']) {
      const response = await request(broker.port, { method: 'PUT', path: `/v1/streams/${stream}`, body });
      assert.equal(response.status, 400, `${body}: ${response.text}`);
    }
    assertProblem(
      await request(broker.port, { path: `/v1/streams/${stream}/state` }),
      404,
      'stream_not_found',
    );
  });

  it('2.1 at least the newest `events` are kept, and never more than twice as many', async () => {
    const stream = freshStream('events');
    await createStream(broker.port, stream, { retention: { events: 10 } });
    for (const seq of range(1, 75)) {
      await publish(broker.port, stream, `event ${seq}`);
      const { floor, head } = await stateOf(broker.port, stream);
      const kept = head - floor + 1;
      assert.equal(head, seq);
      assert.ok(kept >= Math.min(seq, 10) && kept <= 20, `${kept} kept of ${seq}`);
    }
    const { floor, head } = await stateOf(broker.port, stream);
    const expected = range(floor, head).map((seq) => `event ${seq}`);
    assert.deepEqual(
      (await readAll(broker.port, stream)).map((event) => event.data),
      expected,
    );
  });

  it('2.1 at least the newest `bytes` are kept, and never more than twice as many', async () => {
    const stream = freshStream('bytes');
    const bytes = 20_000;
    await createStream(broker.port, stream, { retention: { bytes } });
    for (let round = 0; round < 40; round++) {
      await publishLines(
        broker.port,
        stream,
        range(1, 20).map((index) => `${round}/${index} `.padEnd(100, '.')),
      );
      const state = await stateOf(broker.port, stream);
      const dataBytes = (state.head - state.floor + 1) * 100;
      assert.ok(
        dataBytes <= 2 * bytes && state.bytes <= 2 * bytes,
        `${state.bytes} bytes kept, ${dataBytes} of data`,
      );
      assert.ok(state.bytes >= Math.min(bytes, state.head * 100), `only ${state.bytes} bytes kept`);
    }
  });

  it('2.1 events go when they are older than twice `ageMs`, and their ids are not used again', async () => {
    const stream = freshStream('age');
    await createStream(broker.port, stream, { retention: { ageMs: 1_000 } });
    const { epoch, last } = await publishLines(broker.port, stream, ['a', 'b', 'c']);
    const emptied = await eventually('the old events to go', async () => {
      const state = await stateOf(broker.port, stream);
      return state.floor === last + 1 && state;
    });
    assert.deepEqual([emptied.epoch, emptied.head], [epoch, last]);
    assert.deepEqual(await publish(broker.port, stream, 'd'), { epoch, first: last + 1, last: last + 1 });
  });

  it('2.1 events younger than `ageMs` stay', async () => {
    const stream = freshStream('young');
    await createStream(broker.port, stream, { retention: { ageMs: 3_600_000 } });
    await publishLines(broker.port, stream, range(1, 500).map(String));
    const { floor, head } = await stateOf(broker.port, stream);
    assert.deepEqual([floor, head], [1, 500]);
  });

  it('2.2 state gives epoch, floor, committed, head, bytes and subscribers; an empty stream has floor head + 1', async () => {
    const stream = freshStream('state');
    await createStream(broker.port, stream);
    const empty = await stateOf(broker.port, stream);
    assert.match(empty.epoch, /^[a-z0-9]{8,16}$/);
    assert.deepEqual([empty.floor, empty.committed, empty.head, empty.bytes], [1, 0, 0, 0]);
    assert.ok('logFloor' in empty);

    await publishLines(broker.port, stream, ['one', 'two', 'three']);
    const subscription = await SseSubscription.open(broker.port, stream);
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.floor, state.committed, state.head], [empty.epoch, 1, 3, 3]);
    assert.equal(state.subscribers, 1);
    assert.ok(state.bytes > 0);
    subscription.cut();
    await eventually(
      'the subscriber to be gone',
      async () => (await stateOf(broker.port, stream)).subscribers === 0,
    );
  });

  it('2.2 HEAD gives the positions as headers and no body', async () => {
    const stream = freshStream('head');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    const response = await request(broker.port, { method: 'HEAD', path: `/v1/streams/${stream}` });
    assert.equal(response.status, 200);
    assert.equal(response.body.length, 0);
    assert.equal(response.header('gapless-epoch'), epoch);
    assert.equal(response.header('gapless-floor'), '1');
    assert.equal(response.header('gapless-head'), '2');
  });

  it('2.2 what does not exist is 404 stream_not_found, and asking does not create it', async () => {
    const stream = freshStream('absent');
    for (const [method, path] of [
      ['GET', `/v1/streams/${stream}/state`],
      ['POST', `/v1/streams/${stream}/close`],
      ['DELETE', `/v1/streams/${stream}`],
      ['GET', `/v1/streams/${stream}/state`],
    ] as const) {
      assertProblem(await request(broker.port, { method, path }), 404, 'stream_not_found');
    }
    const head = await request(broker.port, { method: 'HEAD', path: `/v1/streams/${stream}` });
    assert.equal(head.status, 404);
    assert.equal(head.body.length, 0);
  });

  it('2.3 a closed stream takes no more events (409 stream_closed) and can still be read', async () => {
    const stream = freshStream('closed');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    await closeStream(broker.port, stream);
    assertProblem(await request(broker.port, publishRequest(stream, 'late')), 409, 'stream_closed');
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.floor, state.head], [epoch, 1, 2]);
    assert.deepEqual(
      (await readAll(broker.port, stream)).map((event) => event.data),
      ['one', 'two'],
    );
  });

  it('2.3 a closed stream is gone after its TTL', async () => {
    const stream = freshStream('ttl');
    await createStream(broker.port, stream, { ttlMs: 200 });
    await publish(broker.port, stream, 'one');
    await closeStream(broker.port, stream);
    await eventually('the TTL to end', async () => {
      const response = await request(broker.port, { path: `/v1/streams/${stream}/state` });
      return response.status === 404;
    });
  });

  it('2.3 the same name made again after DELETE has another epoch, and old cursors are told so (I3)', async () => {
    const stream = freshStream('again');
    const before = await publishLines(broker.port, stream, ['one', 'two', 'three']);
    await deleteStream(broker.port, stream);
    assertProblem(
      await request(broker.port, { path: `/v1/streams/${stream}/state` }),
      404,
      'stream_not_found',
    );
    const after = await publish(broker.port, stream, 'another one');
    assert.notEqual(after.epoch, before.epoch);
    assert.equal(after.first, 1);

    const resumed = await SseSubscription.ask(broker.port, stream, {
      lastEventId: cursorOf(before.epoch, 1),
    });
    const problem = assertProblem(await resumed.refusal(), 410, 'resume_unavailable');
    assert.deepEqual([problem.reason, problem.epoch], ['epoch_changed', after.epoch]);
  });

  it('1 a hundred incarnations of one name have a hundred epochs', async () => {
    const stream = freshStream('incarnations');
    const epochs = new Set<string>();
    for (let round = 0; round < 100; round++) {
      await createStream(broker.port, stream);
      const { epoch } = await stateOf(broker.port, stream);
      positionOf(cursorOf(epoch, 0));
      epochs.add(epoch);
      await deleteStream(broker.port, stream);
    }
    assert.equal(epochs.size, 100);
  });

  it('2.4 fifty publishers that create a stream at once create one: one epoch, seqs 1 to 50', async () => {
    const stream = freshStream('race');
    const published = await Promise.all(
      range(1, 50).map((index) => publish(broker.port, stream, `event ${index}`)),
    );
    assert.equal(new Set(published.map(({ epoch }) => epoch)).size, 1);
    assert.deepEqual(
      published.map(({ first }) => first).sort((a, b) => a - b),
      range(1, 50),
    );
  });
});

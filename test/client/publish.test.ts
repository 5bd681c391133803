import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { GaplessClient, GaplessError } from '#gapless/client/client.js';
import { useBroker } from '../support/broker-process.js';
import { cursorOf, range, seqOf } from '../support/cursor.js';
import { freshStream, type Page, readPage } from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { answers, type Script, ScriptedServer } from './scripted-server.js';

const FAST = { retryMs: 1, attemptsMax: 1000 };

describe('publishing with the client', () => {
  const broker = useBroker();
  const client = (): GaplessClient => new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });

  async function read(stream: string): Promise<Page['events']> {
    return (await readPage(broker.port, stream, 'limit=1000')).json<Page>().events;
  }

  it('appends text, bytes and values as JSON, with any type, alone and in batches', async () => {
    const stream = freshStream('kinds');
    const { epoch, first, last, cursor } = await client().publish(stream, 'text', { type: 'ä€' });
    assert.deepEqual([first, last, cursor], [1, 1, cursorOf(epoch, 1)]);
    await client().publish(stream, new Uint8Array([0, 255]));
    await client().publish(stream, { a: [1, null] }, { type: 'value' });
    const batch = [
      { data: 'x'.repeat(70_000) },
      { data: new Uint8Array([7]), type: 'b' },
      { data: 5 },
      { data: '' },
    ];
    assert.equal((await client().publishBatch(stream, batch)).last, 7);
    const events = (await read(stream)).map(({ type, data, encoding }) => [type, data, encoding]);
    assert.deepEqual(events, [
      ['ä€', 'text', undefined],
      ['message', 'AP8=', 'base64'],
      ['value', '{"a":[1,null]}', undefined],
      ['message', 'x'.repeat(70_000), undefined],
      ['b', 'Bw==', 'base64'],
      ['message', '5', undefined],
      ['message', '', undefined],
    ]);
  });

  it('appends only at the head that is named, and says where the head is', async () => {
    const stream = freshStream('if-head');
    const { cursor } = await client().publish(stream, 'one');
    await client().publish(stream, 'two', { ifHead: cursor });
    const error = await client()
      .publish(stream, 'again', { ifHead: cursor })
      .catch((thrown: unknown) => thrown);
    assert.ok(error instanceof GaplessError);
    assert.deepEqual(
      [error.code, error.status, seqOf(String(error.problem['head']))],
      ['head_mismatch', 412, 2],
    );
  });

  it('throws at once what cannot pass, and names a stream that cannot be without asking', async () => {
    const stream = freshStream('closed');
    await client().publish(stream, 'one');
    await client().closeStream(stream);
    await assert.rejects(client().publish(stream, 'two'), { code: 'stream_closed', status: 409 });
    await assert.rejects(client().publish(stream, (() => 0) as never), TypeError);
    await assert.rejects(client().publish('..', 'one'), { code: 'invalid_stream_name', status: 0 });
  });

  it('throws for data that JSON would make an empty object of, and takes what is one', async () => {
    const stream = freshStream('lost');
    const lost = [
      new ArrayBuffer(4),
      new Float32Array([1]),
      Promise.resolve(1),
      new Map([[1, 2]]),
      new Error('x'),
    ];
    for (const data of lost) {
      await assert.rejects(client().publish(stream, data), TypeError);
      await assert.rejects(client().publishBatch(stream, [{ data }]), TypeError);
      await assert.rejects(client().publisher(stream).publish(data), TypeError);
    }
    for (const data of [{}, Object.create(null), [], new Date(0), { toJSON: () => ({}) }])
      await client().publish(stream, data);
    assert.deepEqual(
      (await read(stream)).map(({ data }) => data),
      ['{}', '{}', '[]', '"1970-01-01T00:00:00.000Z"', '{}'],
    );
  });

  it('a publisher keeps the order, in batches, and tells each event its cursor', async () => {
    const stream = freshStream('ordered');
    const publisher = client().publisher(stream, { batchEventsMax: 100 });
    const cursors = await Promise.all(range(1, 1000).map((n) => publisher.publish(`event ${n}`)));
    assert.deepEqual(cursors.map(seqOf), range(1, 1000));
    assert.deepEqual(
      (await read(stream)).map(({ data }) => data),
      range(1, 1000).map((n) => `event ${n}`),
    );
  });

  it('each event counts once, in order, however often connections break before or after the answer (I1)', async () => {
    const stream = freshStream('broken');
    const proxy = await TcpProxy.start(broker.port);
    const breaking = new GaplessClient({ url: `http://127.0.0.1:${proxy.port}` });
    let bytes = 0;
    proxy.cutAfterBytes(bytes);
    const growing = setInterval(() => proxy.cutAfterBytes((bytes = (bytes + 37) % 700)), 1);
    const publisher = breaking.publisher(stream, { ...FAST, batchEventsMax: 3 });
    await publisher.publishAll(range(1, 60).map(String));
    const singles = range(61, 80);
    for (const n of singles) await breaking.publish(stream, String(n), FAST);
    clearInterval(growing);
    assert.deepEqual(
      (await read(stream)).map(({ data }) => data),
      range(1, 80).map(String),
    );
    assert.ok(
      proxy.requestHeads.length > 5,
      `${proxy.requestHeads.length} connections: there were no breaks`,
    );
    await proxy.stop();
  });

  it('a publisher goes on after a batch that was refused, and not after one whose fate is unknown', async () => {
    const stream = freshStream('refused');
    const publisher = client().publisher(stream, { batchEventsMax: 1 });
    await publisher.publish('one');
    await assert.rejects(publisher.publish('x', { type: 'stream_closed' }), { code: 'reserved_type' });
    assert.equal(seqOf(await publisher.publish('two')), 2);
    const server = await ScriptedServer.start(answers(503, null));
    const lost = new GaplessClient({ url: server.url }).publisher(stream, { retryMs: 1, attemptsMax: 2 });
    await assert.rejects(lost.publish('one'), { code: 'unexpected_answer', status: 503 });
    await assert.rejects(lost.publish('two'), { code: 'outcome_unknown' });
    await server.stop();
  });

  it('an event that is too large goes alone, and no other is refused with it', async () => {
    const stream = freshStream('large');
    const publisher = client().publisher(stream);
    const outcomes = await Promise.allSettled(
      ['one', 'x'.repeat(2 ** 20 + 1), 'two', 'three'].map((data) => publisher.publish(data)),
    );
    assert.deepEqual(
      outcomes.map((outcome) =>
        outcome.status === 'fulfilled' ? seqOf(outcome.value) : outcome.reason.code,
      ),
      [1, 'event_too_large', 2, 3],
    );
  });

  it('a publisher does not go on where a refusal came after an attempt without an answer (I1)', async () => {
    const stream = freshStream('doubtful');
    const passOn = async (request: IncomingMessage): Promise<Response> => {
      const headers = Object.entries(request.headersDistinct).filter(([name]) =>
        /^(producer|content-type)/.test(name),
      );
      return fetch(`http://127.0.0.1:${broker.port}${request.url}`, {
        method: 'POST',
        headers: headers.map(([name, [value = ''] = []]): [string, string] => [name, value]),
        body: await new Response(Readable.toWeb(request) as ReadableStream).arrayBuffer(),
      });
    };
    const takesAndDies: Script = (request, response) =>
      void passOn(request).then(() => response.socket?.destroy());
    const server = await ScriptedServer.start(
      takesAndDies,
      answers(403, { code: 'forbidden', title: 'x' }),
      (request, response) =>
        void passOn(request).then(async (answer) =>
          response.writeHead(answer.status).end(await answer.text()),
        ),
    );
    const publisher = new GaplessClient({ url: server.url }).publisher(stream, FAST);
    await assert.rejects(publisher.publish('one'), { code: 'forbidden' });
    // The broker has it, and would take what comes next for it: answered as appended, and lost.
    await assert.rejects(publisher.publish('two'), { code: 'outcome_unknown' });
    assert.deepEqual(
      (await read(stream)).map(({ data }) => data),
      ['one'],
    );
    await server.stop();
  });

  it('a publisher that was quiet for longer than it is remembered goes on, and not in a stream made anew', async () => {
    const epoch = 'abcdefgh01';
    const taken = (last: number): Script => {
      return (request, response) =>
        void request.resume().once('end', () => response.end(JSON.stringify({ epoch, first: last, last })));
    };
    const forgotten = answers(409, { code: 'producer_gap', title: 'x', expected: 0 });
    const state = (of: string): Script => {
      return (_request, response) => void response.end(JSON.stringify({ epoch: of }));
    };
    const server = await ScriptedServer.start(
      taken(1),
      taken(2),
      ...[forgotten, state(epoch), taken(3)],
      taken(4),
      ...[forgotten, state('zzzzzzzz99')],
    );
    const publisher = new GaplessClient({ url: server.url }).publisher('s', FAST);
    for (const seq of [1, 2, 3, 4]) assert.equal(await publisher.publish('x'), cursorOf(epoch, seq));
    await assert.rejects(publisher.publish('x'), { code: 'producer_gap' });
    const said = server.requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers);
    assert.deepEqual(
      said.map((headers) => headers['producer-seq']),
      ['0', '1', '2', '0', '1', '2'],
    );
    const ids = said.map((headers) => headers['producer-id']);
    assert.equal(new Set(ids).size, 2);
    assert.deepEqual(ids.slice(3), [ids[3], ids[3], ids[3]]);
    await server.stop();
  });

  it('a connection that is closed as soon as it is accepted, or never answered, is none (I1)', async () => {
    const stream = freshStream('dead');
    const treatments = [(socket: Socket) => void socket.end(), (socket: Socket) => void socket.resume()];
    const sockets: Socket[] = [];
    const front = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      const treatment = treatments.shift();
      if (treatment !== undefined) return void treatment(socket);
      const behind = connect(broker.port, '127.0.0.1');
      behind.on('error', () => socket.destroy());
      socket.pipe(behind).pipe(socket);
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const patient = new GaplessClient({ url, answerTimeoutMs: 100 });
    assert.equal((await patient.publish(stream, 'once', FAST)).last, 1);
    assert.deepEqual(treatments, []);
    assert.equal((await read(stream)).length, 1);
    front.close();
    for (const socket of sockets) socket.destroy();
  });

  it('a publisher bounds what waits: it refuses more, or takes it no faster than the server', async () => {
    const stream = freshStream('bounded');
    const publisher = client().publisher(stream, { queueBytesMax: 100_000, batchBytesMax: 40_000 });
    const data = 'x'.repeat(10_000);
    const accepted = range(1, 20).map(() => publisher.publish(data));
    const outcomes = await Promise.allSettled(accepted);
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    assert.ok(refused.length >= 9 && refused.length <= 11, `${refused.length} of 20 were refused`);
    let waiting = 0;
    let most = 0;
    async function* source(): AsyncGenerator<string> {
      for (const _event of range(1, 100)) {
        most = Math.max(most, ++waiting);
        yield data;
      }
    }
    const cursor = await publisher.publishAll(source());
    assert.equal(seqOf(cursor ?? ''), 20 - refused.length + 100);
  });
});

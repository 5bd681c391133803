import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { SseDecoder } from '#gapless/client/sse-decoder.js';
import { HttpTarget, readEvents, readText, type UnderWay } from '#gapless/mcp/upstream/http-request.js';
import type { HttpResponse } from '#gapless/mcp/upstream/http-response.js';
import { UpstreamError } from '#gapless/mcp/upstream/upstream.js';
import { eventually } from '../support/deadline.js';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const STREAM = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const event = (data: string): string => `data: ${data}\n\n`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** A server that answers each request by hand, with the head and the connection of each. */
async function startServer(
  context: TestContext,
  answer: (socket: Socket, head: string, count: number) => void,
  silenceMs = 30_000,
) {
  const sockets: Socket[] = [];
  let count = 0;
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      count++;
      answer(socket, bytes.toString('latin1'), count);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const target = new HttpTarget(new URL(`http://user:pass%20word@127.0.0.1:${port}/mcp?a=b`), silenceMs);
  context.after(() => {
    target.close();
    server.close();
  });
  const get = (underWay?: Set<UnderWay>): Promise<HttpResponse> => target.request('GET', {}, null, underWay);
  return { target, sockets, get, text: async () => readText(await get(), 1000) };
}

async function reasonOf(failing: Promise<unknown>): Promise<string> {
  const error = await failing.catch((reason: unknown) => reason);
  assert.ok(error instanceof UpstreamError, String(error));
  return error.reason;
}

describe('requests to a server', () => {
  it('say what they are to say, and use a connection again', async (context) => {
    const heads: string[] = [];
    const { target, sockets } = await startServer(context, (socket, head) => {
      heads.push(head);
      socket.write(OK);
    });
    const headers = { 'Mcp-Session-Id': 'a' };
    for (const credentials of [{}, { authorization: 'Bearer b' }]) {
      const response = await target.request('POST', { ...headers, ...credentials }, Buffer.from('{}'));
      assert.equal(await readText(response, 2), 'ok');
    }
    const { host } = target.url;
    const basic = Buffer.from('user:pass word').toString('base64');
    const begun = `POST /mcp?a=b HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
    assert.deepEqual(heads, [
      `${begun}Authorization: Basic ${basic}\r\nMcp-Session-Id: a\r\ncontent-length: 2\r\n\r\n{}`,
      `${begun}Mcp-Session-Id: a\r\nauthorization: Bearer b\r\ncontent-length: 2\r\n\r\n{}`,
    ]);
    assert.equal(sockets.length, 1);
  });

  it('do not use a connection again that ends, that the server will not wait on, or that says more than it was asked', async (context) => {
    const answers = [
      OK.replace('OK\r\n', 'OK\r\nConnection: TE, Close\r\n'),
      OK.replace('OK\r\n', 'OK\r\nKeep-Alive: timeout=1, max=5\r\n'),
      OK.replace('HTTP/1.1', 'HTTP/1.0'),
      `${OK}${OK}`,
      OK,
    ];
    const { sockets, text } = await startServer(context, (socket, _head, count) => {
      socket.write(answers[count - 1] as string);
    });
    for (const _ of answers) assert.equal(await text(), 'ok');
    assert.equal(sockets.length, answers.length);
  });

  it('fail before the head: nobody there, hung up, no HTTP, a header that nobody can send, nothing for too long', async (context) => {
    const answers = [
      '',
      'SSH-2.0-OpenSSH\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    ];
    const { target, get } = await startServer(context, (socket, _head, count) => {
      const answer = answers[count - 1] as string;
      if (answer === '') socket.destroy();
      else socket.write(answer);
    });
    for (const _ of answers) assert.equal(await reasonOf(get()), 'unreachable');
    assert.equal(await reasonOf(target.request('GET', { a: 'b\r\nc: d' }, null)), 'unreachable');
    const nobody = new HttpTarget(new URL('http://127.0.0.1:1/mcp'), 1000);
    assert.equal(await reasonOf(nobody.request('GET', {}, null)), 'unreachable');
    const { get: wait } = await startServer(context, () => undefined, 20);
    assert.equal(await reasonOf(wait()), 'silent');
  });

  it('fail in the midst of an answer: hung up, silent, given up', async (context) => {
    const { get } = await startServer(context, (socket) => {
      socket.end(STREAM + chunk('a'));
    });
    assert.equal(await reasonOf(readText(await get(), 10)), 'broken');
    const { get: wait } = await startServer(context, (socket) => socket.write(STREAM + chunk('a')), 20);
    assert.equal(await reasonOf(wait().then((response) => readText(response, 10))), 'silent');
    const { get: given } = await startServer(context, (socket) => socket.write(STREAM + chunk('a')));
    const underWay = new Set<UnderWay>();
    const reading = readText(await given(underWay), 10);
    assert.equal(underWay.size, 1);
    for (const request of underWay) request.destroy();
    assert.equal(await reasonOf(reading), 'broken');
    assert.equal(underWay.size, 0);
  });

  it('are sent once: on a connection that is there, and not again when it breaks', async (context) => {
    const { target, sockets } = await startServer(context, (socket, _head, count) => {
      if (count === 1) socket.end(OK);
      else socket.destroy();
    });
    const post = () => target.request('POST', {}, Buffer.from('{}'));
    const response = await post();
    const closed = once(sockets[0] as Socket, 'close');
    assert.equal(await readText(response, 2), 'ok');
    await closed;
    assert.equal(await reasonOf(post()), 'unreachable');
    assert.equal(sockets.length, 2);
  });

  it('have answers with any headers, after what is said in advance', async (context) => {
    const { get } = await startServer(context, (socket) => {
      const odd = 'constructor: a\r\n__proto__: b\r\nX-Twice: c\r\nx-twice: d\r\nX-Empty:\r\n';
      socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK.replace('OK\r\n', `OK\r\n${odd}`)}`);
    });
    const response = await get();
    const names = ['constructor', '__proto__', 'x-twice', 'x-empty', 'x-none', 'tostring', 'link'];
    const values = names.map((name) => response.header(name));
    assert.deepEqual(values, ['a', 'b', 'c, d', null, null, null, null]);
    assert.equal(await readText(response, 2), 'ok');
  });

  it('that are given up before there is a connection are not sent', async (context) => {
    const heads: string[] = [];
    const { target, text } = await startServer(context, (socket, head) => {
      heads.push(head);
      socket.write(OK);
    });
    const underWay = new Set<UnderWay>();
    const given = target.request('POST', {}, Buffer.from('{}'), underWay);
    for (const request of underWay) request.destroy();
    assert.equal(await reasonOf(given), 'unreachable');
    assert.equal(underWay.size, 0);
    assert.equal(await text(), 'ok');
    assert.deepEqual(
      heads.map((head) => head.slice(0, 4)),
      ['GET '],
    );
  });

  it('take a body without a length to its end, or are given up before it', async (context) => {
    const { get, text } = await startServer(context, (socket, _head, count) => {
      if (count === 1) socket.write('HTTP/1.1 200 OK\r\n\r\nto no end');
      else socket.end('HTTP/1.1 200 OK\r\n\r\nto the end');
    });
    const response = await get();
    response.destroy();
    assert.equal(await reasonOf(readText(response, 100)), 'broken');
    assert.equal(await text(), 'to the end');
  });

  it('hold a server back whose answer nobody takes', async (context) => {
    const size = 64 * 1024 * 1024;
    const { sockets, get } = await startServer(context, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      socket.write(Buffer.alloc(size));
    });
    const response = await get();
    let taken = 0;
    await response.read(async (bytes) => {
      if (taken === 0) {
        // So many turns would bring it all, if it were not held back.
        for (let turn = 0; turn < 2000; turn++) await new Promise((resolve) => setImmediate(resolve));
        assert.ok((sockets[0]?.writableLength ?? 0) > size / 2);
      }
      taken += bytes.length;
    });
    assert.equal(taken, size);
  });
});

describe('the events of an answer', () => {
  it('come one at a time: the next when there is room, and before the end of a connection that broke', async (context) => {
    const taken: string[] = [];
    const goOn: (() => void)[] = [];
    const { sockets, get } = await startServer(context, (socket) => {
      socket.write(STREAM + chunk(event('1') + event('2')) + chunk(event('3')));
    });
    const done = readEvents(await get(), 100, {
      decoder: new SseDecoder(),
      take: ({ data }) => {
        taken.push(data ?? '');
        return new Promise((resolve) => goOn.push(resolve));
      },
    });
    const reason = reasonOf(done);
    for (const count of [1, 2, 3]) {
      await eventually('an event', () => taken.length === count);
      sockets[0]?.destroy();
      goOn[count - 1]?.();
    }
    assert.equal(await reason, 'broken');
    assert.deepEqual(taken, ['1', '2', '3']);
  });

  it('that are larger than they may be, or that nobody can use, end it and the connection', async (context) => {
    for (const [text, expected] of [
      [event('x'.repeat(101)), 'message_too_large'],
      [`data: ${'x'.repeat(101)}`, 'message_too_large'],
      [event('?'), 'rubbish'],
    ] as const) {
      const { sockets, get } = await startServer(context, (socket) => socket.write(STREAM + chunk(text)));
      const take = () => {
        throw new UpstreamError('rubbish');
      };
      const response = await get();
      const closed = once(sockets[0] as Socket, 'close');
      assert.equal(await reasonOf(readEvents(response, 100, { decoder: new SseDecoder(), take })), expected);
      await closed;
    }
  });
});

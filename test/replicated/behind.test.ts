import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { cursorOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, publish } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { startBroker } from '../support/replicated-brokers.js';

/** A way to a server on which nothing comes back for a while. */
class HeldLine {
  /** What comes from the server, and who it is for. */
  readonly #answering = new Map<Socket, Socket>();
  url = '';

  static async to(context: TestContext, port: number): Promise<HeldLine> {
    const line = new HeldLine();
    const server = createServer((client) => {
      const there = connect({ host: '127.0.0.1', port });
      line.#answering.set(there, client);
      for (const [socket, other] of [
        [client, there],
        [there, client],
      ] as const) {
        socket.pipe(other);
        socket.on('error', () => other.destroy());
        socket.on('close', () => other.destroy());
      }
      context.after(() => client.destroy());
    });
    context.after(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    line.url = `nats://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return line;
  }

  hold(): void {
    for (const socket of this.#answering.keys()) socket.unpipe().pause();
  }

  release(): void {
    for (const [socket, client] of this.#answering) socket.pipe(client);
  }
}

describe('a broker that has not heard yet what another one told', { skip: NATS_SKIP }, () => {
  it('4.1, 6.1 asks the log before it refuses, also for a stream that nobody has asked it for before (I2)', async (context) => {
    const nats = await NatsServer.start(context);
    const line = await HeldLine.to(context, nats.port);
    const [ahead, behind] = await Promise.all([startBroker(context, nats), startBroker(context, line)]);
    const streams = ['live', 'paged'].map(freshStream) as [string, string];
    for (const stream of streams) await createStream(ahead.port, stream);
    await eventually('it to have heard of the streams', async () => {
      const { text } = await request(behind.port, { path: '/v1/streams' });
      return streams.every((stream) => text.includes(stream));
    });
    line.hold();
    const cursors: string[] = [];
    for (const stream of streams) {
      const { epoch, last } = await publish(ahead.port, stream, 'x');
      cursors.push(cursorOf(epoch, last));
    }
    const answers = Promise.all([
      statusOf(behind.port, `/v1/streams/${streams[0]}?cursor=${cursors[0]}`, 'text/event-stream'),
      statusOf(behind.port, `/v1/streams/${streams[1]}?cursor=${cursors[1]}`, 'application/json'),
    ]);
    // Whatever needs no log is answered by then.
    for (const _ of [1, 2, 3]) await request(behind.port, { path: '/v1/streams' });
    line.release();
    // On a machine that is slow enough the line counts as broken.
    for (const status of await answers) assert.ok([200, 503].includes(status), String(status));
  });
});

/** Status of an answer, however long its body goes on. */
async function statusOf(port: number, path: string, accept: string): Promise<number> {
  const leaving = new AbortController();
  const headers = { Accept: accept };
  const { status } = await fetch(`http://127.0.0.1:${port}${path}`, { headers, signal: leaving.signal });
  leaving.abort();
  return status;
}

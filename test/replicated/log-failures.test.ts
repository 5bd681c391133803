import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { DiscardPolicy, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, headers } from '@nats-io/transport-node';
import type { LogEntry } from '#gapless/storage/jetstream/log-entry.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import {
  assertProblem,
  freshStream,
  publish,
  publishRequest,
  readAll,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { scrape, total } from '../support/prometheus.js';
import { openLog, startBroker } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';

const LARGE_BYTES = 1024 ** 2;
const NO_ENTRY = {} as LogEntry;

/** Takes connections in the place of a server that has ended, and says nothing. Resolves with the first. */
async function startMute({ port }: NatsServer): Promise<{ mute: Server; connection: Socket }> {
  const mute = createServer().listen(port, '127.0.0.1');
  const [connection] = (await once(mute, 'connection')) as [Socket];
  return { mute, connection };
}

describe('a log in JetStream that fails', { skip: NATS_SKIP }, () => {
  it('3.6, 8 publishes are refused, readers keep what they have, and it goes on by itself (I3, I4)', async (context) => {
    const nats = await NatsServer.start(context);
    const broker = await startBroker(context, nats);
    const stream = freshStream('away');
    const { epoch } = await publish(broker.port, stream, '1');
    const subscription = await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, 0) });
    await subscription.untilSeq(1);
    await nats.kill();
    await eventually('publishes to be refused', async () => {
      const refused = await request(broker.port, publishRequest(stream, 'lost?'));
      return refused.status === 503 && refused.text.includes('log_unavailable') ? true : undefined;
    });
    assert.deepEqual(
      (await readAll(broker.port, stream)).slice(0, 1).map(({ data }) => data),
      ['1'],
    );
    // Of a stream that is not known here nobody can say that it is not there.
    assertProblem(
      await request(broker.port, { path: `/v1/streams/${freshStream('unknown')}` }),
      503,
      'log_unavailable',
    );
    // Nor that there is no such event.
    const ahead = await SseSubscription.ask(broker.port, stream, { lastEventId: cursorOf(epoch, 99) });
    assertProblem(await ahead.refusal(), 503, 'log_unavailable');
    assert.equal(subscription.ending, undefined);

    await nats.startAgain();
    const { last } = await eventually('publishes to be taken again', async () => {
      const response = await request(broker.port, publishRequest(stream, 'again'));
      return response.status === 200 ? response.json<{ last: number }>() : undefined;
    });
    await subscription.untilSeq(last);
    assert.deepEqual(subscription.seqs, range(1, last));
    assert.equal((await stateOf(broker.port, stream)).epoch, epoch);
  });

  it('8 how large an event may be does not depend on whether a server is there just now', async (context) => {
    const nats = await NatsServer.start(context);
    const { log, heard } = await openLog('own', nats.url);
    const bytesMax = log.bodyBytesMax;
    assert.ok(bytesMax > 0);
    await nats.kill();
    // How large a message may be is what a server says first.
    const { mute, connection } = await startMute(nats);
    assert.equal(log.bodyBytesMax, bytesMax);
    mute.close();
    connection.destroy();
    await nats.startAgain();
    await eventually('another connection', () => heard.includes(true));
    assert.equal(log.bodyBytesMax, bytesMax);
    await log.close();
  });

  it('leaves a server that takes nothing any more, whatever it was sent', async (context) => {
    const nats = await NatsServer.start(context);
    const { log, heard } = await openLog('own', nats.url);
    await nats.standStill();
    // More than the systems on both sides buffer.
    const body = new Uint8Array(LARGE_BYTES);
    const appends = range(1, 64).map((after) => log.append('large', NO_ENTRY, body, after));
    await Promise.all(appends.map((append) => assert.rejects(append)));
    await eventually('the connection to be given up', () => heard.includes(false));
    await log.close();
  });

  it('lets go of a server that says nothing when it is closed', async (context) => {
    const nats = await NatsServer.start(context);
    const { log } = await openLog('own', nats.url);
    await nats.kill();
    const { mute, connection } = await startMute(nats);
    const left = once(connection.resume(), 'close');
    await log.close();
    // A program that has a broker in it could not end before.
    await withDeadline('the connection to end', left);
    mute.close();
  });

  it('10 ends when it is told to, although the only server says nothing and a publish waits for it', async (context) => {
    const nats = await NatsServer.start(context);
    const broker = await startBroker(context, nats);
    const stream = freshStream('silent');
    const { epoch } = await publish(broker.port, stream, '1');
    await SseSubscription.open(broker.port, stream, { lastEventId: cursorOf(epoch, 0) });
    await nats.standStill();
    const waiting = assert.rejects(request(broker.port, publishRequest(stream, 'waits')));
    // The publish has reached it by then.
    await stateOf(broker.port, stream);
    assert.deepEqual(await broker.stop(), { code: 0, signal: null });
    await waiting;
  });

  it('4.4 what the log has lost is another epoch, and no id is given twice (I3)', async (context) => {
    const nats = await NatsServer.start(context);
    const broker = await startBroker(context, nats);
    const stream = freshStream('lost');
    const { epoch } = await publish(broker.port, stream, 'seen');
    await nats.kill();
    nats.forgetAll();
    await nats.startAgain();
    const again = await eventually('publishes to be taken again', async () => {
      const response = await request(broker.port, publishRequest(stream, 'of now'));
      return response.status === 200 ? response.json<{ epoch: string; first: number }>() : undefined;
    });
    assert.notEqual(again.epoch, epoch);
    assert.equal(total(await scrape(broker.port), 'gapless_log_renewed_streams_total'), 1);
    const resumed = await SseSubscription.ask(broker.port, stream, { lastEventId: cursorOf(epoch, 1) });
    assert.equal(assertProblem(await resumed.refusal(), 410, 'resume_unavailable').reason, 'epoch_changed');
  });

  it('a broker ends, and does not start, where somebody else has written into its log, and says where', async (context) => {
    const nats = await NatsServer.start(context);
    const broker = await startBroker(context, nats);
    const stream = freshStream('foreign');
    await publish(broker.port, stream, 'of a broker');
    const connection = await connect({ servers: [`127.0.0.1:${nats.port}`] });
    const ack = await connection.request(`gapless.GAPLESS.${stream}`, 'of somebody else');
    assert.equal((await broker.untilExit()).code, 1);
    const { seq } = ack.json<{ seq: number }>();
    const where = `message ${seq} of the JetStream stream GAPLESS`;
    assert.match(JSON.stringify(broker.errors), new RegExp(where));
    await assert.rejects(startBroker(context, nats), new RegExp(`cannot start: ${where}`));

    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    await streams.deleteMessage('GAPLESS', seq);
    await connection.close();
    // By its count a message is pending that is not there.
    await (await startBroker(context, nats)).stop();
    // Of a subject whose newest message was deleted NATS 2.9 finds the one before only then.
    await nats.stop();
    await nats.startAgain();
    const { port } = await startBroker(context, nats);
    await publish(port, stream, 'and another');
    assert.deepEqual(
      (await readAll(port, stream)).map(({ data }) => data),
      ['of a broker', 'and another'],
    );
  });

  for (const kind of ['stream', 'named subscriber']) {
    it(`a broker ends, and does not start, where a newer version has written of a ${kind}, and says so`, async (context) => {
      const nats = await NatsServer.start(context);
      const broker = await startBroker(context, nats);
      const stream = freshStream('newer');
      await publish(broker.port, stream, 'of this version');
      const connection = await connect({ servers: [`127.0.0.1:${nats.port}`] });
      const newer = JSON.stringify({ format: 2, unheardOf: true });
      const subject = `gapless.GAPLESS.${stream}`;
      const described = headers();
      described.set('Gapless-Entry', newer);
      const ack = await (kind === 'stream'
        ? connection.request(subject, '', { timeout: 10_000, headers: described })
        : connection.request(`${subject}.ada`, newer, { timeout: 10_000 }));
      await connection.close();
      const where = `message ${ack.json<{ seq: number }>().seq} of the JetStream stream GAPLESS`;
      const said = `${where} was written by a newer version of Gapless \\(format 2; this one reads up to 1\\)`;
      assert.equal((await broker.untilExit()).code, 1);
      assert.match(JSON.stringify(broker.errors), new RegExp(said));
      await assert.rejects(startBroker(context, nats), new RegExp(`cannot start: ${said}`));
    });
  }

  it('a broker does not start on a log that lets events go by itself, and says why', async (context) => {
    const nats = await NatsServer.start(context);
    await (await startBroker(context, nats)).stop();
    const connection = await connect({ servers: [`127.0.0.1:${nats.port}`] });
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    const lossy: Partial<StreamConfig>[] = [
      { max_age: 3600e9, discard: DiscardPolicy.New },
      { max_age: 0, discard: DiscardPolicy.Old },
    ];
    for (const config of lossy) {
      await streams.update('GAPLESS', config);
      const setting = config.max_age === 0 ? 'discard old' : 'max_age';
      await assert.rejects(startBroker(context, nats), new RegExp(`cannot start: .*${setting}`));
    }
    await connection.close();
  });

  it('a broker does not start without its log, and says why', async (context) => {
    const nats = await NatsServer.start(context);
    await nats.kill();
    await assert.rejects(startBroker(context, nats, '--log-wait-ms', '0'), /cannot start/);
  });
});

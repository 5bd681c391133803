import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogError } from '#gapless/storage/event-log.js';
import { AGREES_SINCE, isBefore } from '#gapless/storage/jetstream/server-version.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import {
  createStream,
  freshStream,
  type Page,
  publishRequest,
  readPage,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NatsNetwork } from '../support/nats-network.js';
import { NATS_SKIP, NATS_VERSION, type NatsServer } from '../support/nats-server.js';
import { openLog, startBroker } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const FLAGS = ['--log-replicas', '3', '--log-wait-ms', '1m'];
/** One in three times a broker comes to the server that is behind. */
const RETURNS = 3;

describe('servers of a log that do not hear of each other', { skip: NATS_SKIP }, () => {
  it('4.7 a server that is behind the others has no stream ended that it has not heard of yet', async (context) => {
    const network = await NatsNetwork.start(context);
    const maker = await startBroker(context, network, ...FLAGS);
    await createStream(maker.port, freshStream('first'));
    await maker.stop();
    const { ofStream, ofAll } = await eventually('two that lead', async () => {
      const leaders = await network.leaders('GAPLESS');
      if (leaders.ofStream !== leaders.ofAll) return leaders;
      await network.stepDown('GAPLESS');
      return undefined;
    });
    const line = await TcpProxy.start((network.servers[ofAll] as NatsServer).port);
    context.after(() => line.stop());
    const broker = await startBroker(context, { url: `nats://127.0.0.1:${line.port}` }, ...FLAGS);

    network.hold(ofStream, 3 - ofStream - ofAll);
    const stream = freshStream('new');
    const untilTaken = (data: string): Promise<{ last: number; epoch: string }> =>
      eventually('a publish to be taken', async () => {
        const answer = await request(broker.port, publishRequest(stream, data));
        return answer.status === 200 ? answer.json<{ last: number; epoch: string }>() : undefined;
      });
    const { epoch } = await untilTaken('seen by two');
    const subscription = await SseSubscription.open(broker.port, stream, { cursor: 'earliest' });
    await subscription.untilSeq(1);
    for (const _ of range(1, RETURNS)) {
      line.cutAll();
      await broker.until('the log is back');
    }
    network.mend();
    const { last } = await untilTaken('seen by all');
    await subscription.untilSeq(last);
    assert.equal(subscription.seqs[0], 1);
    assert.equal((await stateOf(broker.port, stream)).epoch, epoch);
  });

  it('4.4 one that is cut off from the others confirms nothing, and deletes nothing by it (I3)', async (context) => {
    const network = await NatsNetwork.start(context);
    const broker = await startBroker(context, network, ...FLAGS);
    const stream = freshStream('kept');
    await createStream(broker.port, stream);
    const { ofStream } = await network.leaders('GAPLESS');
    const { log } = await openLog('GAPLESS', (network.servers[ofStream] as NatsServer).url);
    context.after(() => log.close());
    await log.confirm();
    for (const other of [0, 1, 2]) if (other !== ofStream) network.hold(ofStream, other);
    await assert.rejects(log.confirm(), LogError);
    network.mend();
    await eventually('it to be confirmed', () =>
      log.confirm().then(
        () => true,
        () => false,
      ),
    );
    assert.notEqual(await log.newest(stream), null);
  });

  it('4.4 what one was given that was cut off stands for no event that the others took (I3)', async (context) => {
    const network = await NatsNetwork.start(context);
    const stream = freshStream('parted');
    const maker = await startBroker(context, network, ...FLAGS);
    const isWarned = maker.log.some(({ msg }) => msg?.startsWith('NATS before') === true);
    assert.equal(isWarned, isBefore(NATS_VERSION, AGREES_SINCE));
    const { ofStream } = await network.leaders('GAPLESS');
    const others = [0, 1, 2].filter((at) => at !== ofStream);
    const knowing = (...servers: number[]) =>
      startBroker(context, { url: servers.map((at) => network.servers[at]?.url).join(',') }, ...FLAGS);
    const [aside, broker] = await Promise.all([knowing(ofStream), knowing(...others)]);
    const seen = new Map<string, string>();
    const take = async (port: number, data: string): Promise<boolean> => {
      const answer = await request(port, publishRequest(stream, data));
      if (answer.status !== 200) return false;
      const { epoch, last } = answer.json<{ epoch: string; last: number }>();
      seen.set(`${epoch}.${last}`, data);
      return true;
    };
    const untilTaken = (port: number, data: string) =>
      eventually('a publish to be taken', () => take(port, data));
    await untilTaken(aside.port, 'before');
    for (const other of others) network.hold(ofStream, other);
    const late = take(aside.port, 'late');
    for (const data of ['kept', 'next', 'last']) await untilTaken(broker.port, data);
    network.mend();
    await late;
    for (const { port } of [aside, broker]) await untilTaken(port, 'mended');
    await eventually('the one that was cut off to lead again', async () => {
      const isLeading = (await network.leaders('GAPLESS')).ofStream === ofStream;
      if (!isLeading) await network.stepDown('GAPLESS');
      return isLeading;
    });
    // One that has nothing in memory reads all of it from the log.
    const newcomer = await knowing(ofStream);
    await untilTaken(newcomer.port, 'seen by all');
    for (const { port } of [newcomer, aside, broker]) {
      const page = await eventually('a page', async () => {
        const answer = await readPage(port, stream);
        return answer.status === 200 && answer.json<Page>();
      });
      for (const { id, data } of page.events) {
        assert.equal(data, seen.get(id) ?? data, id);
        seen.set(id, data);
      }
    }
  });
});

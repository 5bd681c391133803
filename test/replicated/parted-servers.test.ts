import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogError } from '#gapless/storage/event-log.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, publishRequest, stateOf } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NatsNetwork } from '../support/nats-network.js';
import { NATS_SKIP, type NatsServer } from '../support/nats-server.js';
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
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Followers } from '../fault/followers.js';
import { RetryingCrew } from '../fault/retrying-crew.js';
import type { BrokerProcess } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, readAll, stateOf } from '../support/gapless-client.js';
import { askAcknowledgement } from '../support/named-subscriber.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { seededPrng } from '../support/prng.js';
import { startBroker } from '../support/replicated-brokers.js';
import { SseSubscription } from '../support/sse-client.js';
import { TcpBalancer } from '../support/tcp-balancer.js';

const BROKERS = 2;
const READERS = 20;
const ANSWERS = 40;
const FLAGS = ['--drain-ms', '500', '--retry-ms', '300', '--ring-bytes', '32KiB'];

describe('brokers that share a log, behind a balancer', { skip: NATS_SKIP }, () => {
  it('10 a rolling restart: one after the other is replaced, no event is lost, and no reader has a gap', async (context) => {
    const nats = await NatsServer.start(context);
    const balancer = await TcpBalancer.start();
    context.after(() => balancer.stop());
    balancer.spreads = true;
    const brokers = await Promise.all(range(1, BROKERS).map(() => startBroker(context, nats, ...FLAGS)));
    const direct = (): void => {
      balancer.targets = brokers.map(({ port }) => port);
    };
    direct();
    const { port } = balancer;
    const stream = freshStream('rolled');
    await createStream(port, stream);
    const { epoch } = await stateOf(port, stream);
    const crew = new RetryingCrew({
      prng: seededPrng(context),
      port,
      streams: [stream],
      // While one of its connections is cut, those to the other broker would go on beyond what is remembered of it.
      publishers: { closed: 4, wide: 0 },
      // Servers on a busy machine may leave a broker without an answer for some seconds.
      retried: ['log_unavailable'],
    });
    const followers = new Followers({
      ...{ port, stream, count: READERS, checker: crew.checker },
      severalServers: true,
    });
    const as = { query: 'subscriber=ada' };
    (await SseSubscription.open(port, stream, { cursor: 'earliest', ...as })).cut();
    context.after(() => {
      crew.abandon();
      followers.abandon();
    });
    followers.begin();
    crew.begin();
    let acked = 0;
    for (const at of range(0, BROKERS - 1)) {
      await crew.untilAnswers(ANSWERS);
      const before = followers.told.length;
      const old = brokers[at] as BrokerProcess;
      brokers[at] = await startBroker(context, nats, ...FLAGS);
      // The old one is asked on until it says that it goes.
      balancer.targets = [...brokers.map((broker) => broker.port), old.port];
      old.signal('SIGTERM');
      assert.deepEqual(await old.untilExit(), { code: 0, signal: null });
      assert.deepEqual(old.errors, []);
      direct();
      await eventually('its readers to be told', () => followers.told.length > before);

      const named = await eventually('the named subscriber to be let in', async () => {
        const asked = await SseSubscription.ask(port, stream, as);
        return asked.status === 200 && asked;
      });
      await named.untilSeq(acked + 20);
      named.cut();
      assert.equal(named.seqs[0], acked + 1);
      acked = named.seqs.at(-1) ?? 0;
      const cursor = cursorOf(epoch, acked);
      await eventually('the acknowledgement to be taken', async () => {
        const response = await askAcknowledgement(port, stream, { subscriber: 'ada', cursor });
        return response.status === 200 && assert.equal(response.json().acked, cursor) === undefined;
      });
    }
    await crew.untilAnswers(ANSWERS);
    await crew.end();
    await followers.end();

    const { head, epoch: now } = await stateOf(port, stream);
    assert.equal(now, epoch);
    await Promise.all(followers.readers.map((reader) => reader.catchUp(head)));
    const events = await readAll(port, stream);
    crew.observeAll(stream, events);
    assert.equal(events.length, crew.eventCount(stream), 'what was published is there, and nothing else');
    crew.checker.assertClean();
    for (const broker of brokers) assert.deepEqual(await broker.stop(), { code: 0, signal: null });
    context.diagnostic(
      `${crew.answers} answers, ${crew.cuts} publishes cut off, ${followers.told.length} sent away`,
    );
  });
});

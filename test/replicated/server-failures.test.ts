import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { LogEntry } from '#gapless/storage/jetstream/log-entry.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, publish, putStream, readAll } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { keyRequest } from '../support/producer.js';
import { openLog, startBroker } from '../support/replicated-brokers.js';
import { untilCaughtUp } from './caught-up.js';

describe('a log on three NATS servers', { skip: NATS_SKIP }, () => {
  it('3.6, 8 takes no publish while two are down, loses nothing, and has everything again on one that lost its disk (I3, I4)', async (context) => {
    const servers = await NatsServer.startCluster(context, 3);
    const [first, second, third] = servers as [NatsServer, NatsServer, NatsServer];
    const url = servers.map((server) => server.url).join(',');
    const { port } = await startBroker(context, { url }, '--log-replicas', '3', '--log-wait-ms', '1m');
    const stream = freshStream('majority');
    const taken: string[] = [];
    const publishNext = async (): Promise<number> => {
      const data = `${taken.length + 1}`;
      const { status } = await request(port, keyRequest(stream, data, data));
      if (status === 200) taken.push(data);
      return status;
    };
    const untilTaken = (): Promise<unknown> =>
      eventually('a publish to be taken', async () => (await publishNext()) === 200, 60_000);
    for (const _ of range(1, 5)) await untilTaken();

    await Promise.all([first.kill(), second.kill()]);
    await eventually('publishes to be refused', async () => (await publishNext()) === 503, 60_000);
    await second.startAgain();
    await untilTaken();

    first.forgetAll();
    await first.startAgain();
    await untilTaken();
    await untilCaughtUp(third);
    await third.kill();
    await untilTaken();
    assert.deepEqual(
      (await readAll(port, stream)).map(({ data }) => data),
      taken,
    );
  });

  it('8 keeps on each of them what is to stay, where they are killed after retention has let others go (I1)', async (context) => {
    const servers = await NatsServer.startCluster(context, 3);
    const url = servers.map((server) => server.url).join(',');
    const flags = ['--log-replicas', '3', '--log-wait-ms', '1m'];
    const { port } = await startBroker(context, { url }, ...flags);
    const [kept, passing] = [freshStream('kept'), freshStream('passing')];
    await eventually('a stream', async () => (await putStream(port, kept, {})).status === 201, 60_000);
    for (const n of range(1, 5)) await publish(port, kept, `${n}`);
    await createStream(port, passing, { retention: { events: 2 } });
    for (const n of range(1, 10)) await publish(port, passing, `${n}`);
    const connection = await connect({ servers: servers.map(({ port }) => `127.0.0.1:${port}`) });
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    const stateOfLog = () => streams.info('GAPLESS').catch(() => null);
    await eventually(
      'messages to be deleted',
      async () => ((await stateOfLog())?.state.num_deleted ?? 0) > 4,
    );

    for (const server of servers) {
      await untilCaughtUp(server);
      await server.kill();
      await server.startAgain();
    }
    await untilCaughtUp(servers[0] as NatsServer);
    const firstAt = new Map<string, number>();
    await eventually(
      'each of them to have led',
      async () => {
        const info = await stateOfLog();
        const leader = info?.cluster?.leader;
        if (leader !== undefined && info !== null) firstAt.set(leader, info.state.first_seq);
        await connection.request('$JS.API.STREAM.LEADER.STEPDOWN.GAPLESS').catch(() => undefined);
        return firstAt.size === servers.length;
      },
      60_000,
    );
    await connection.close();
    assert.deepEqual([...firstAt.values()], [1, 1, 1], JSON.stringify([...firstAt]));
    const other = await startBroker(context, { url }, ...flags);
    const data = async (stream: string) => (await readAll(other.port, stream)).map(({ data }) => data);
    assert.deepEqual(await data(kept), range(1, 5).map(String));
    assert.deepEqual((await data(passing)).at(-1), '10');
  });

  it('compares nothing once it is replicated, for servers of unlike versions would each keep something else (I3)', async (context) => {
    const servers = await NatsServer.startCluster(context, 3);
    const connection = await connect({ servers: servers.map(({ port }) => `127.0.0.1:${port}`) });
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    const { log } = await openLog('own', ...servers.map(({ url }) => url));
    // The servers may have to find each other first.
    await eventually('the log to be made', () =>
      log.open().then(
        () => true,
        () => false,
      ),
    );
    const append = () => log.append('s', {} as LogEntry, new Uint8Array(), 0);
    assert.equal(log.isExact, true);
    assert.equal(await append(), 1);
    assert.equal(await append(), null);
    await streams.update('own', { num_replicas: 3 });
    await log.usage();
    assert.equal(log.isExact, false);
    assert.equal(await eventually('an append to be taken', () => append().catch(() => false)), 2);
    await connection.close();
    await log.close();
  });
});

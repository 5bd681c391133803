import assert from 'node:assert/strict';
import { after, type TestContext } from 'node:test';
import { JetStreamLog } from '#gapless/storage/jetstream/jetstream-log.js';
import { BrokerProcess, type SuiteBroker, useStartedBroker } from './broker-process.js';
import { NatsServer } from './nats-server.js';

/** A broker process on a shared log, gone after the test. */
export async function startBroker(
  context: TestContext,
  nats: Pick<NatsServer, 'url'>,
  ...flags: string[]
): Promise<BrokerProcess> {
  const broker = await BrokerProcess.start('--log', nats.url, ...flags);
  context.after(async () => {
    if (broker.isRunning) await broker.kill();
  });
  return broker;
}

/** Several, started side by side. */
export function startBrokers(
  context: TestContext,
  nats: Pick<NatsServer, 'url'>,
  count: number,
  ...flags: string[]
): Promise<BrokerProcess[]> {
  return Promise.all(Array.from({ length: count }, () => startBroker(context, nats, ...flags)));
}

/** As `useBroker`, on a log that so many NATS servers keep. */
export function useSharedBroker(servers: number, ...flags: string[]): SuiteBroker {
  const ends: (() => Promise<void>)[] = [];
  const context = { after: (end: unknown) => void ends.push(end as () => Promise<void>) };
  const broker = useStartedBroker(async () => {
    const nats =
      servers === 1 ? [await NatsServer.start(context)] : await NatsServer.startCluster(context, servers);
    const url = nats.map((server) => server.url).join(',');
    return BrokerProcess.start(
      '--log',
      url,
      '--log-replicas',
      String(servers),
      '--log-wait-ms',
      '1m',
      ...flags,
    );
  });
  after(() => Promise.all(ends.map((end) => end())));
  return broker;
}

/** A log that is asked without a broker, and what it hears of its connection. */
export async function openLog(
  stream: string,
  ...urls: string[]
): Promise<{ log: JetStreamLog; heard: boolean[] }> {
  const heard: boolean[] = [];
  const log = await JetStreamLog.connect({
    ...{ urls, credentialsFile: null, tlsCaFile: null, tlsCertFile: null, tlsKeyFile: null },
    ...{ stream, replicas: 1, bytesMax: 0, refused: assert.fail, ended: assert.fail },
    outdated: () => undefined,
    tooSmall: () => assert.fail(),
    connected: (isConnected) => heard.push(isConnected),
  });
  return { log, heard };
}

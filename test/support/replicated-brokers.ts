import type { TestContext } from 'node:test';
import { BrokerProcess } from './broker-process.js';
import type { NatsServer } from './nats-server.js';

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

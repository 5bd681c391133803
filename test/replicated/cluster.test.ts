import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { NATS_SKIP, type NatsServer } from '../support/nats-server.js';
import { ClusterUnderLoad } from './cluster-under-load.js';

/** Faults; more for a long run. */
const ROUNDS = Number(process.env.CLUSTER_ROUNDS ?? 2);
const ANSWERS_PER_ROUND = 60;
const STOP_MS_MAX = 4000;

const FAULTS = ['kill a broker', 'stop a broker', 'kill a server', 'stop a server'] as const;

describe('three brokers over three NATS servers', { skip: NATS_SKIP }, () => {
  it('whatever is killed or stopped, no reader misses or repeats an event, and no publish is lost or doubled, and no acknowledgement is lost (I1, I2, I3, I4, I6)', async (context) => {
    const cluster = await ClusterUnderLoad.start(context);
    const { prng, crew } = cluster;
    const done: string[] = [];
    for (const round of range(1, ROUNDS)) {
      await crew.untilAnswers(ANSWERS_PER_ROUND);
      const fault = ROUNDS >= FAULTS.length ? prng.pick(FAULTS) : (FAULTS[(round - 1) * 2] as string);
      done.push(fault);
      await harm(context, fault, cluster);
      crew.checker.assertClean();
    }
    await crew.untilAnswers(ANSWERS_PER_ROUND);
    context.diagnostic(`${done.join(', ')}: ${await cluster.end()}`);
  });
});

/** One of them at a time; all are up again when this ends. */
async function harm(
  context: TestContext,
  fault: string,
  { prng, brokers, servers }: ClusterUnderLoad,
): Promise<void> {
  const at = prng.below(3);
  const broker = brokers[at] as BrokerProcess;
  const server = servers[at] as NatsServer;
  const [verb, , what] = fault.split(' ');
  if (verb === 'stop') {
    const stopped = what === 'broker' ? broker : server;
    stopped.signal('SIGSTOP');
    await delay(prng.between(100, STOP_MS_MAX));
    stopped.signal('SIGCONT');
  } else if (what === 'broker') {
    await broker.kill();
    brokers[at] = await broker.startAgain();
    context.after(() => brokers[at]?.kill());
  } else {
    await server.kill();
    await delay(prng.below(STOP_MS_MAX));
    await server.startAgain();
  }
}

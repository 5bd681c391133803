import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, stateOf } from '../support/gapless-client.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { startBroker } from '../support/replicated-brokers.js';
import { NamedReader } from './named-reader.js';
import { RoamingCrew } from './roaming-crew.js';

/** Faults; more for a long run. */
const ROUNDS = Number(process.env.CLUSTER_ROUNDS ?? 2);
const ANSWERS_PER_ROUND = 60;
const STOP_MS_MAX = 4000;
const STREAMS = 2;

const FAULTS = ['kill a broker', 'stop a broker', 'kill a server', 'stop a server'] as const;

describe('three brokers over three NATS servers', { skip: NATS_SKIP }, () => {
  it('whatever is killed or stopped, no reader misses or repeats an event, and no publish is lost or doubled, and no acknowledgement is lost (I1, I2, I3, I4, I6)', async (context) => {
    const prng = seededPrng(context);
    const servers = await NatsServer.startCluster(context, 3);
    const url = servers.map((server) => server.url).join(',');
    const flags = [
      '--log-replicas',
      '3',
      '--log-wait-ms',
      '1m',
      '--ring-bytes',
      '16KiB',
      '--heartbeat-interval-ms',
      '1s',
    ];
    const brokers = await Promise.all(range(1, 3).map(() => startBroker(context, { url }, ...flags)));
    const streams = range(1, STREAMS).map((index) => freshStream(`cluster-${index}`));
    for (const stream of streams) await createStream(brokers[0]?.port ?? 0, stream);
    const ports = () => brokers.map(({ port }) => port);
    const crew = new RoamingCrew({ prng, ports, streams });
    const named = streams.map((stream) => new NamedReader({ prng, ports, stream, name: `ada-${stream}` }));
    context.after(() => {
      crew.abandon();
      for (const reader of named) reader.abandon();
    });
    crew.begin();
    for (const reader of named) reader.begin();
    const done: string[] = [];
    for (const round of range(1, ROUNDS)) {
      await crew.untilAnswers(ANSWERS_PER_ROUND);
      const fault = ROUNDS >= FAULTS.length ? prng.pick(FAULTS) : (FAULTS[(round - 1) * 2] as string);
      done.push(fault);
      await harm(context, fault, { prng, brokers, servers });
      crew.checker.assertClean();
    }
    await crew.untilAnswers(ANSWERS_PER_ROUND);
    await crew.end();
    crew.checker.assertClean();
    for (const [at, stream] of streams.entries()) {
      await named[at]?.end(await sameHead(ports(), stream));
    }
    context.diagnostic(
      `${done.join(', ')}: ${crew.answers} publishes, ${crew.retries} retries, ${crew.resumes} resumes, ` +
        `${crew.checker.eventCount} events read, ` +
        `${named.reduce((sum, { acknowledgements }) => sum + acknowledgements, 0)} acknowledgements`,
    );
  });
});

/** A broker hears of what the others wrote a moment later. @returns the head that all have come to, in one epoch. */
async function sameHead(ports: readonly number[], stream: string): Promise<number> {
  let seen = '';
  return eventually('the same head on every broker', async () => {
    const states = await Promise.all(ports.map((port) => stateOf(port, stream)));
    seen = states.map(({ epoch, head }) => `${epoch}.${head}`).join(', ');
    return states.every(({ epoch, head }) => epoch === states[0]?.epoch && head === states[0].head)
      ? states[0]?.head
      : false;
  }).catch((cause) => assert.fail(`${stream} is at ${seen}`, { cause }));
}

interface Machines {
  prng: Prng;
  brokers: BrokerProcess[];
  servers: NatsServer[];
}

/** One of them at a time; all are up again when this ends. */
async function harm(
  context: TestContext,
  fault: string,
  { prng, brokers, servers }: Machines,
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

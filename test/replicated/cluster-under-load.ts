import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { createStream, freshStream, stateOf } from '../support/gapless-client.js';
import { NatsServer } from '../support/nats-server.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { startBrokers } from '../support/replicated-brokers.js';
import { NamedReader } from './named-reader.js';
import { RoamingCrew } from './roaming-crew.js';

const STREAMS = 2;
const FLAGS = [
  '--log-replicas',
  '3',
  '--log-wait-ms',
  '1m',
  '--ring-bytes',
  '16KiB',
  '--heartbeat-interval-ms',
  '1s',
];

/** Three brokers over three NATS servers, with all who publish and read under the gap checker. */
export class ClusterUnderLoad {
  private constructor(
    readonly prng: Prng,
    readonly servers: readonly NatsServer[],
    readonly brokers: BrokerProcess[],
    readonly streams: readonly string[],
    readonly crew: RoamingCrew,
    readonly named: readonly NamedReader[],
  ) {}

  /** @param program of the NATS servers; absent: the one that is installed. */
  static async start(context: TestContext, program?: string): Promise<ClusterUnderLoad> {
    const prng = seededPrng(context);
    const servers = await NatsServer.startCluster(
      context,
      3,
      program === undefined ? [] : range(1, 3).map(() => program),
    );
    const url = servers.map((server) => server.url).join(',');
    const brokers = await startBrokers(context, { url }, 3, ...FLAGS);
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
    return new ClusterUnderLoad(prng, servers, brokers, streams, crew, named);
  }

  /** All publishes are answered, all readers have read to the end, and nothing is missing or there twice. */
  async end(): Promise<string> {
    await this.crew.end();
    this.crew.checker.assertClean();
    for (const [at, stream] of this.streams.entries()) {
      await this.named[at]?.end(await this.#sameHead(stream));
    }
    const { answers, retries, resumes, checker } = this.crew;
    const acknowledgements = this.named.reduce((sum, reader) => sum + reader.acknowledgements, 0);
    return (
      `${answers} publishes, ${retries} retries, ${resumes} resumes, ${checker.eventCount} events read, ` +
      `${acknowledgements} acknowledgements`
    );
  }

  /** A broker hears of what the others wrote a moment later. @returns the head that all have come to, in one epoch. */
  async #sameHead(stream: string): Promise<number> {
    let seen = '';
    return eventually('the same head on every broker', async () => {
      const states = await Promise.all(this.brokers.map(({ port }) => stateOf(port, stream)));
      seen = states.map(({ epoch, head }) => `${epoch}.${head}`).join(', ');
      return states.every(({ epoch, head }) => epoch === states[0]?.epoch && head === states[0].head)
        ? states[0]?.head
        : false;
    }).catch((cause) => assert.fail(`${stream} is at ${seen}`, { cause }));
  }
}

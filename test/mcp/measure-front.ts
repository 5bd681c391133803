/**
 * What the front costs a call: `node build/test/mcp/measure-front.js [SECONDS [AT_ONCE]]`, on an otherwise idle machine.
 * Calls of a tool that does nothing, at servers of the SDK over HTTP and over their standard streams, with the front and
 * without it by turns: one at a time, for the latency that it adds, and many at once. Over HTTP with fronts that keep
 * sessions as well: in a data directory, and in a log in NATS, where that is installed.
 */

import { fileURLToPath } from 'node:url';
import { BrokerProcess } from '../support/broker-process.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { type MeasuredWay, measuredHttp, measuredProgram } from './measured-ways.js';
import { ServerProcess } from './server-process.js';

const ROUNDS = 8;
/** What is compiled late is not what is measured. */
const WARM_UP_MS = 2000;
const PROGRAM = [process.execPath, fileURLToPath(new URL('./sdk-stdio-process.js', import.meta.url))];

interface Measured {
  readonly way: MeasuredWay;
  /** Of calls one at a time, milliseconds. */
  readonly latencies: number[];
  /** Of each round, calls a second. */
  readonly rates: number[];
}

async function oneAtATime({ call }: MeasuredWay, forMs: number): Promise<number[]> {
  const latencies: number[] = [];
  for (const end = performance.now() + forMs; performance.now() < end; ) {
    const begun = performance.now();
    await call();
    latencies.push(performance.now() - begun);
  }
  return latencies;
}

/** @returns calls a second. */
async function manyAtOnce({ call }: MeasuredWay, atOnce: number, forMs: number): Promise<number> {
  const begun = performance.now();
  let done = 0;
  const run = async (): Promise<void> => {
    while (performance.now() - begun < forMs) {
      await call();
      done++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, run));
  return (done * 1000) / (performance.now() - begun);
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
}

/** @param measured without the front first. */
function report(measured: readonly Measured[], atOnce: number): void {
  const without = quantile(measured[0]?.latencies ?? [], 0.5);
  for (const { way, latencies, rates } of measured) {
    const [p50 = 0, p99 = 0] = [0.5, 0.99].map((part) => quantile(latencies, part));
    const rate = quantile(rates, 0.5).toFixed(0);
    const added = way === measured[0]?.way ? '' : ` (${(p50 - without).toFixed(2)} added)`;
    console.log(
      `${way.name}: p50 ${p50.toFixed(2)} ms${added}, p99 ${p99.toFixed(2)} ms; ${rate} calls/s, ${atOnce} at once`,
    );
  }
}

async function main(seconds: number, atOnce: number): Promise<void> {
  const server = await ServerProcess.start(2);
  const broker = await BrokerProcess.start(
    ...['--mcp', `/mcp=${server.url}`, '--mcp', `/program=stdio:${PROGRAM.join(' ')}`],
  );
  const ends: (() => unknown)[] = [];
  const brokers = [broker];
  const through = async (name: string, { port }: BrokerProcess, path = '/mcp'): Promise<MeasuredWay> =>
    measuredHttp(name, `http://127.0.0.1:${port}${path}`, atOnce);
  const keeping = async (name: string, ...flags: string[]): Promise<MeasuredWay> => {
    const keeper = await BrokerProcess.start('--mcp', `/mcp=${server.url}`, ...flags);
    brokers.push(keeper);
    return through(name, keeper);
  };
  const directory = makeDirectory();
  ends.push(() => removeDirectory(directory));
  const overHttp = [
    await measuredHttp('a server over HTTP', server.url, atOnce),
    await through('through the front', broker),
    await keeping('through the front, with a data directory', '--data-dir', directory),
  ];
  if (NATS_SKIP === false) {
    const nats = await NatsServer.start({ after: (end: unknown) => void ends.push(end as () => unknown) });
    overHttp.push(await keeping('through the front, with a log in NATS', '--log', nats.url));
  }
  const overPipes = [
    await measuredProgram('a program', PROGRAM),
    await through('through the front', broker, '/program'),
  ];
  const ways = [...overHttp, ...overPipes];
  const measured = ways.map((way): Measured => ({ way, latencies: [], rates: [] }));
  const forMs = (seconds * 1000) / ROUNDS / ways.length;
  for (const way of ways) {
    await oneAtATime(way, WARM_UP_MS / 2);
    await manyAtOnce(way, atOnce, WARM_UP_MS);
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { way, latencies } of measured) latencies.push(...(await oneAtATime(way, forMs / 2)));
    for (const { way, rates } of measured) rates.push(await manyAtOnce(way, atOnce, forMs / 2));
  }
  report(measured.slice(0, overHttp.length), atOnce);
  report(measured.slice(overHttp.length), atOnce);
  for (const way of ways) await way.close();
  for (const each of brokers) await each.stop();
  await server.kill();
  for (const end of ends) await end();
}

await main(Number(process.argv[2] ?? 40), Number(process.argv[3] ?? 16));

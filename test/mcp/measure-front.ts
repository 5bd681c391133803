/**
 * What the front costs a call: `node build/test/mcp/measure-front.js [SECONDS [AT_ONCE]]`, on an otherwise idle machine.
 * Calls of a tool that does nothing, at servers of the SDK over HTTP and over their standard streams, with the front and
 * without it by turns: one at a time, for the latency that it adds, and many at once.
 */

import { fileURLToPath } from 'node:url';
import { BrokerProcess } from '../support/broker-process.js';
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

function report([without, through]: readonly [Measured, Measured], atOnce: number): void {
  for (const { way, latencies, rates } of [without, through]) {
    const [p50, p99] = [0.5, 0.99].map((part) => quantile(latencies, part).toFixed(2));
    const rate = quantile(rates, 0.5).toFixed(0);
    console.log(`${way.name}: p50 ${p50} ms, p99 ${p99} ms; ${rate} calls/s, ${atOnce} at once`);
  }
  const added = quantile(through.latencies, 0.5) - quantile(without.latencies, 0.5);
  console.log(`  added: p50 ${added.toFixed(2)} ms`);
}

async function main(seconds: number, atOnce: number): Promise<void> {
  const server = await ServerProcess.start(2);
  const broker = await BrokerProcess.start(
    ...['--mcp', `/mcp=${server.url}`, '--mcp', `/program=stdio:${PROGRAM.join(' ')}`],
  );
  const front = `http://127.0.0.1:${broker.port}`;
  const ways = [
    await measuredHttp('a server over HTTP', server.url, atOnce),
    await measuredHttp('through the front', `${front}/mcp`, atOnce),
    await measuredProgram('a program', PROGRAM),
    await measuredHttp('through the front', `${front}/program`, atOnce),
  ];
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
  for (let i = 0; i < measured.length; i += 2) {
    report([measured[i] as Measured, measured[i + 1] as Measured], atOnce);
  }
  for (const way of ways) await way.close();
  await broker.stop();
  await server.kill();
}

await main(Number(process.argv[2] ?? 40), Number(process.argv[3] ?? 16));

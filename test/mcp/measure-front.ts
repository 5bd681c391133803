/**
 * What the front costs a call: `node build/test/mcp/measure-front.js [SECONDS]`, on an otherwise idle machine. Calls of a
 * tool that does nothing, at a server of the SDK, with the front and without it by turns: one at a time, for the latency
 * that it adds, and many at once.
 */

import { Agent, type IncomingMessage, request } from 'node:http';
import { BrokerProcess } from '../support/broker-process.js';
import { RawSession } from './mcp-http.js';
import { ServerProcess } from './server-process.js';

const ROUNDS = 5;
const AT_ONCE = 32;
const WARM_UP_MS = 1000;

interface Way {
  readonly name: string;
  readonly session: RawSession;
  readonly agent: Agent;
  /** Of calls one at a time, milliseconds. */
  readonly latencies: number[];
  /** Of each round. */
  readonly rates: number[];
}

let calls = 0;

/** Resolves when the answer has come whole. Connections are used again, as those of clients are. */
function call({ session, agent }: Way): Promise<void> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: ++calls,
    method: 'tools/call',
    params: { name: 'count', arguments: { label: 'x', steps: 0 } },
  });
  const headers = {
    ...session.headers(),
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
  };
  return new Promise((resolve, reject) => {
    const asked = request(session.url, { method: 'POST', agent, headers }, (answer: IncomingMessage) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.once('error', reject);
      answer.once('end', () => {
        if (answer.statusCode === 200 && text.includes('counted to 0')) resolve();
        else reject(new Error(`${answer.statusCode} ${text}`));
      });
    });
    asked.once('error', reject);
    asked.end(body);
  });
}

async function oneAtATime(way: Way, forMs: number, latencies: number[]): Promise<void> {
  for (const end = performance.now() + forMs; performance.now() < end; ) {
    const begun = performance.now();
    await call(way);
    latencies.push(performance.now() - begun);
  }
}

/** @returns calls a second. */
async function manyAtOnce(way: Way, forMs: number): Promise<number> {
  const begun = performance.now();
  let done = 0;
  const run = async (): Promise<void> => {
    while (performance.now() - begun < forMs) {
      await call(way);
      done++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  return (done * 1000) / (performance.now() - begun);
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
}

async function main(seconds: number): Promise<void> {
  const server = await ServerProcess.start(2);
  const broker = await BrokerProcess.start('--mcp', `/mcp=${server.url}`);
  const front = `http://127.0.0.1:${broker.port}/mcp`;
  const ways: Way[] = [];
  for (const [name, url] of [
    ['server alone', server.url],
    ['through the front', front],
  ] as const) {
    const session = await RawSession.open(url);
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
    ways.push({ name, session, agent, latencies: [], rates: [] });
  }
  try {
    for (const way of ways) {
      await oneAtATime(way, WARM_UP_MS, []);
      await manyAtOnce(way, WARM_UP_MS);
    }
    const forMs = (seconds * 1000) / ROUNDS;
    for (let round = 0; round < ROUNDS; round++) {
      for (const way of ways) await oneAtATime(way, forMs, way.latencies);
      for (const way of ways) way.rates.push(await manyAtOnce(way, forMs));
    }
    for (const { name, latencies, rates } of ways) {
      const [p50, p99] = [0.5, 0.99].map((part) => quantile(latencies, part).toFixed(2));
      const rate = quantile(rates, 0.5).toFixed(0);
      console.log(`${name}: p50 ${p50} ms, p99 ${p99} ms; ${rate} calls/s, ${AT_ONCE} at once`);
    }
  } finally {
    for (const { agent } of ways) agent.destroy();
    await broker.stop();
    await server.kill();
  }
}

await main(Number(process.argv[2] ?? 10));

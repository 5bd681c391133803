/**
 * The load client where there is no C compiler: fan-outs, storms and publishing, with the same options, checks and
 * report. It is far dearer than the native one, so what it measures is mostly itself.
 */

import { connect, type Socket } from 'node:net';
import { FrameChecker, ResponseBody } from './checks.js';

const STALL_MS = 30_000;
const SETTLE_MS = 100;
const LATENCIES_MAX = 1_000_000;

const [mode = '', ...pairs] = process.argv.slice(2);
const options = new Map<string, string>();
for (let i = 0; i < pairs.length; i += 2) options.set(pairs[i] ?? '', pairs[i + 1] ?? '');
const numberOption = (name: string, otherwise: number) => Number(options.get(`--${name}`) ?? otherwise);

const port = numberOption('port', 0);
const stream = options.get('--stream') ?? 'bench';
const subscriberCount = numberOption('subscribers', 500);
const publisherCount = numberOption('publishers', 1);
const batch = numberOption('batch', 1);
const events = numberOption('events', 1000);
const times = numberOption('times', 1);
const durationMs = numberOption('duration-ms', 3000);
const data = payload(numberOption('event-bytes', 100));

const path = `/v1/streams/${stream}`;
const latenciesUs: number[] = [];
let published = 0;
let acked: { epoch: string; seq: number } | null = null;

function payload(bytes: number): string {
  const text = '{"delta":"the quick brown fox jumps over the lazy dog"} ';
  return text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes);
}

function fail(message: string): never {
  process.stderr.write(`load: ${message}\n`);
  process.exit(1);
}

function open(): Socket {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.on('error', (error) => fail(error.message));
  return socket;
}

/** One request at a time until `goesOn` says no. Resolves when the last answer is there. */
function publishWhile(goesOn: () => boolean): Promise<void> {
  const body = batch > 1 ? `${data}\n`.repeat(batch) : data;
  const type = batch > 1 ? 'application/x-ndjson' : 'text/plain';
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return new Promise((resolve) => {
    const socket = open();
    let answer = '';
    let askedAt = 0;
    const ask = () => {
      if (!goesOn()) {
        socket.destroy();
        return resolve();
      }
      published++;
      askedAt = performance.now();
      socket.write(head + body);
    };
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => {
      answer += part;
      const [, status, cursor, length] =
        /^HTTP\/1\.1 (\d+)[\s\S]*?\r\ngapless-cursor: *(\S+)[\s\S]*?\r\ncontent-length: *(\d+)/i.exec(
          answer,
        ) ?? [];
      const headEnd = answer.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      if (status !== '200' || cursor === undefined) fail(`publisher: ${answer}`);
      if (answer.length < headEnd + 4 + Number(length)) return;
      if (latenciesUs.length < LATENCIES_MAX) latenciesUs.push((performance.now() - askedAt) * 1000);
      answer = '';
      const [epoch = '', seq] = cursor.split('.');
      if (acked === null || Number(seq) > acked.seq) acked = { epoch, seq: Number(seq) };
      ask();
    });
    socket.on('close', () => goesOn() && fail('the server closed a publisher'));
    socket.once('connect', ask);
  });
}

interface Subscriber {
  readonly socket: Socket;
  readonly checker: FrameChecker;
  readonly primed: Promise<void>;
}

function subscribe(index: number, lastEventId: string | null): Subscriber {
  const socket = open();
  const from = lastEventId === null ? '' : `Last-Event-ID: ${lastEventId}\r\n`;
  const query = lastEventId === null ? '?cursor=latest' : '';
  const checker = new FrameChecker(data, (problem) => fail(`subscriber ${index}: ${problem}`));
  const body = new ResponseBody(
    (bytes) => checker.take(bytes),
    (problem) => fail(`subscriber ${index}: ${problem}`),
  );
  socket.write(`GET ${path}${query} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n${from}\r\n`);
  socket.on('data', (bytes) => body.take(bytes));
  socket.on('end', () => fail(`the server closed connection ${index}`));
  return { socket, checker, primed: checker.primed };
}

async function caughtUp(subscribers: readonly Subscriber[]): Promise<void> {
  const target = (acked as { seq: number } | null)?.seq ?? 0;
  const until = performance.now() + STALL_MS;
  while (subscribers.some(({ checker }) => checker.seq < target)) {
    if (performance.now() > until) fail(`catching up: not within ${STALL_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Also an event that is one too many is to be seen. */
const settle = () => new Promise((resolve) => setTimeout(resolve, SETTLE_MS));

function report(seconds: number, cpu: NodeJS.CpuUsage, more: Record<string, number>): void {
  const loadCpu = (cpu.user + cpu.system) / 1e6 / seconds;
  process.stdout.write(`${JSON.stringify({ mode, native: 0, seconds, loadCpu, ...more })}\n`);
}

function publishing(seconds: number): Record<string, number> {
  const sorted = latenciesUs.sort((a, b) => a - b);
  const percentile = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return {
    publishers: publisherCount,
    batch,
    publishes: published,
    publishesPerSecond: published / seconds,
    eventsPerSecond: (published * batch) / seconds,
    publishLatencyP50Us: percentile(0.5),
    publishLatencyP99Us: percentile(0.99),
  };
}

async function publishAll(goesOn: () => boolean): Promise<void> {
  await Promise.all(Array.from({ length: publisherCount }, () => publishWhile(goesOn)));
}

async function runLive(): Promise<void> {
  const count = mode === 'fanout' ? subscriberCount : 0;
  const subscribers = Array.from({ length: count }, (_, i) => subscribe(i, null));
  await Promise.all(subscribers.map(({ primed }) => primed));
  const cpu = process.cpuUsage();
  const began = performance.now();
  await publishAll(() => performance.now() < began + durationMs);
  await caughtUp(subscribers);
  const seconds = (performance.now() - began) / 1000;
  const used = process.cpuUsage(cpu);
  await settle();
  const deliveries = subscribers.reduce((sum, { checker }) => sum + checker.received, 0);
  if (deliveries !== published * batch * count) fail(`${deliveries} deliveries of ${published} publishes`);
  for (const { socket } of subscribers) socket.resetAndDestroy();
  report(seconds, used, { ...publishing(seconds), deliveries, deliveriesPerSecond: deliveries / seconds });
}

async function runStorm(): Promise<void> {
  const publishes = Math.floor(events / batch);
  await publishAll(() => published < publishes);
  const end = acked as unknown as { epoch: string; seq: number };
  let seconds = 0;
  const cpu = process.cpuUsage();
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    const cursor = `${end.epoch}.${end.seq - published * batch}`;
    const subscribers = Array.from({ length: subscriberCount }, (_, index) => subscribe(index, cursor));
    await Promise.all(subscribers.map(({ primed }) => primed));
    await caughtUp(subscribers);
    seconds += (performance.now() - began) / 1000;
    for (const { socket } of subscribers) socket.resetAndDestroy();
    await settle();
  }
  const deliveries = published * batch * subscriberCount * times;
  const more = { times, events: published * batch, deliveries, deliveriesPerSecond: deliveries / seconds };
  report(seconds, process.cpuUsage(cpu), more);
}

if (mode === 'storm') await runStorm();
else if (mode === 'fanout' || mode === 'publish') await runLive();
else fail(`mode ${mode} needs the native client`);

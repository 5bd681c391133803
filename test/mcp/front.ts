import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';

export interface Front {
  readonly broker: BrokerProcess;
  urlOf(path: string): string;
  /** It must end by itself, and have logged no error. */
  stop(): Promise<void>;
}

/** Clients do as they are told by `retry:`. */
const RETRY_AT_ONCE = ['--retry-ms', '20'];

/** A broker with a front before each of these upstreams: a URL, or `stdio:` and a command. */
export async function launchFront(
  upstreams: Readonly<Record<string, string>>,
  ...flags: string[]
): Promise<Front> {
  const mounts = Object.entries(upstreams).flatMap(([path, upstream]) => ['--mcp', `${path}=${upstream}`]);
  const broker = await BrokerProcess.start(...mounts, ...RETRY_AT_ONCE, ...flags);
  return {
    broker,
    urlOf: (path) => `http://127.0.0.1:${broker.port}${path}`,
    async stop() {
      assert.deepEqual(await broker.stop(), { code: 0, signal: null }, broker.stderr);
      assert.deepEqual(broker.errors, []);
    },
  };
}

/** The same, until the test ends. */
export async function startFront(
  context: TestContext,
  upstreams: Readonly<Record<string, string>>,
  ...flags: string[]
): Promise<Front> {
  const front = await launchFront(upstreams, ...flags);
  context.after(() => front.stop());
  return front;
}

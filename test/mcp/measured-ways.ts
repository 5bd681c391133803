/** Ways to a server whose tool does nothing: over HTTP, and over the standard streams of its process. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { type JsonRpc, RawSession, REVISION } from './raw-session.js';

export interface MeasuredWay {
  readonly name: string;
  /** Resolves when the answer has come whole. */
  call(): Promise<void>;
  close(): Promise<void>;
}

const ANSWER = 'counted to 0';
let calls = 0;

function nextCall(): JsonRpc {
  const params = { name: 'count', arguments: { label: 'x', steps: 0 } };
  return { jsonrpc: '2.0', id: ++calls, method: 'tools/call', params };
}

export async function measuredHttp(name: string, url: string, atOnce: number): Promise<MeasuredWay> {
  const session = await RawSession.open(url);
  // Connections are used again, as those of clients are.
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const call = (): Promise<void> => {
    const body = JSON.stringify(nextCall());
    const headers = {
      ...session.headers(),
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
    };
    return new Promise((resolve, reject) => {
      const asked = request(url, { method: 'POST', agent, headers }, (answer: IncomingMessage) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.once('error', reject);
        answer.once('end', () => {
          if (answer.statusCode === 200 && text.includes(ANSWER)) resolve();
          else reject(new Error(`${answer.statusCode} ${text}`));
        });
      });
      asked.once('error', reject);
      asked.end(body);
    });
  };
  return { name, call, close: async () => agent.destroy() };
}

/** A client of the program itself, as one on the same machine is. */
export async function measuredProgram(name: string, words: readonly string[]): Promise<MeasuredWay> {
  const [program = '', ...args] = words;
  const child: ChildProcessWithoutNullStreams = spawn(program, args, { stdio: 'pipe' });
  child.stderr.resume();
  const waiting = new Map<string, (text: string) => void>();
  createInterface({ input: child.stdout }).on('line', (text) => {
    const id = JSON.stringify((JSON.parse(text) as JsonRpc).id);
    waiting.get(id)?.(text);
    waiting.delete(id);
  });
  const ask = (message: JsonRpc): Promise<string> =>
    new Promise((resolve) => {
      waiting.set(JSON.stringify(message.id), resolve);
      child.stdin.write(`${JSON.stringify(message)}\n`);
    });
  const clientInfo = { name: 'raw', version: '1.0.0' };
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
  await ask({ jsonrpc: '2.0', id: 'begin', method: 'initialize', params });
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  return {
    name,
    async call() {
      const text = await ask(nextCall());
      if (!text.includes(ANSWER)) throw new Error(text);
    },
    async close() {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}

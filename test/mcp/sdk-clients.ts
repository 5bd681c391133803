import {
  Client as Client2,
  SSEClientTransport as Sse2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as Sse1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { SdkVersion } from './sdk-server.js';

export interface CallOutcome {
  /** What each progress notification said, or how far it was where it said nothing. */
  readonly progress: string[];
  readonly text: string;
}

/** An unmodified client of the official SDK; it comes back after a break at once and often. */
export interface SdkClient {
  callTool(
    name: string,
    given: Record<string, unknown>,
    options?: { readonly onProgress?: (message: string) => void; readonly timeoutMs?: number },
  ): Promise<CallOutcome>;
  listTools(): Promise<string[]>;
  close(): Promise<void>;
}

/** Often enough for a front that starts again. */
export const RECONNECTION = {
  initialReconnectionDelay: 10,
  maxReconnectionDelay: 100,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 20,
};
const TIMEOUT_MS = 30_000;

export async function connectSdkClient(version: SdkVersion, url: string): Promise<SdkClient> {
  const options = { reconnectionOptions: RECONNECTION };
  const info = { name: `client of version ${version}`, version: '1.0.0' };
  if (version === 1) {
    const client = new Client1(info);
    const transport = new Transport1(new URL(url), options);
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    return wrap(client, (call, request) => client.callTool(call, undefined, request));
  }
  const client = new Client2(info);
  await client.connect(new Transport2(new URL(url), options));
  return wrap(client, (call, request) => client.callTool(call, request));
}

/** The same over HTTP+SSE. */
export async function connectSdkSseClient(version: SdkVersion, url: string): Promise<SdkClient> {
  const info = { name: `client of version ${version}`, version: '1.0.0' };
  if (version === 1) {
    const client = new Client1(info);
    await client.connect(new Sse1(new URL(url)));
    return wrap(client, (call, request) => client.callTool(call, undefined, request));
  }
  const client = new Client2(info);
  await client.connect(new Sse2(new URL(url)));
  return wrap(client, (call, request) => client.callTool(call, request));
}

/** A client of version 1 over the standard streams of a program. */
export async function connectStdioClient(words: readonly string[]): Promise<SdkClient> {
  const client = new Client1({ name: 'client of a program', version: '1.0.0' });
  const [command = '', ...args] = words;
  const transport = new StdioClientTransport({ command, args, stderr: 'ignore' });
  await client.connect(transport);
  oneMessageAtATime(transport);
  return wrap(client, (call, request) => client.callTool(call, undefined, request));
}

/**
 * The client forgets who wants the progress of a call as soon as it is given its result, and tells of progress only a
 * microtask after it is given it: what a slow reader finds in one piece with the result, it drops. So it is given each
 * message when it is done with the one before.
 */
function oneMessageAtATime(transport: StdioClientTransport): void {
  const take = transport.onmessage;
  let taken = Promise.resolve();
  transport.onmessage = (message) => {
    taken = taken.then(() => take?.(message));
  };
}

interface Call {
  name: string;
  arguments: Record<string, unknown>;
}

interface RequestOptions {
  onprogress: (progress: { progress: number; message?: string | undefined }) => void;
  timeout: number;
}

function wrap(
  client: Client1 | Client2,
  callTool: (call: Call, options: RequestOptions) => Promise<unknown>,
): SdkClient {
  return {
    async callTool(name, given, { onProgress, timeoutMs = TIMEOUT_MS } = {}) {
      const progress: string[] = [];
      const result = await callTool(
        { name, arguments: given },
        {
          onprogress: ({ progress: done, message = String(done) }) => {
            progress.push(message);
            onProgress?.(message);
          },
          timeout: timeoutMs,
        },
      );
      const { content } = result as { content: { text?: string }[] };
      return { progress, text: content.map(({ text = '' }) => text).join('') };
    },
    async listTools() {
      const { tools } = await client.listTools();
      return tools.map(({ name }) => name).sort();
    },
    close: () => client.close(),
  };
}

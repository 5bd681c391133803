import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer, type ServerEventBus } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { count } from './counting-tool.js';
import { Gates } from './gates.js';
import { RECONNECTION } from './sdk-clients.js';

/**
 * A server of the SDK, version 2, of requests that stand for themselves (MCP 2026-07-28), with the counting tool.
 * @param bus which it hears of changes by, in place of its own.
 */
export async function startStatelessServer(
  context: TestContext,
  bus?: ServerEventBus,
): Promise<{ url: string; gates: Gates }> {
  const gates = new Gates();
  const inputSchema = z.object({ label: z.string(), steps: z.number(), holdAfter: z.number().optional() });
  const newServer = (): McpServer => {
    const server = new McpServer(
      { name: 'stateless', version: '1.0.0' },
      { capabilities: { tools: { listChanged: true } } },
    );
    server.registerTool('count', { inputSchema }, (given, { mcpReq }) =>
      count(given, { token: mcpReq._meta?.progressToken, notify: mcpReq.notify, gates }),
    );
    return server;
  };
  const handler = createMcpHandler(newServer, bus === undefined ? {} : { bus });
  const answer = toNodeHandler(handler);
  const http = createServer((request, response) => void answer(request as NodeIncomingMessageLike, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  context.after(async () => {
    await handler.close();
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, gates };
}

/** An unmodified client of the SDK that speaks that revision alone. */
export async function connectStatelessClient(context: TestContext, url: string): Promise<Client> {
  const client = new Client(
    { name: 'client of a stateless server', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const options = { reconnectionOptions: RECONNECTION };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  context.after(() => client.close());
  return client;
}

/** A server of the SDK, version 2, over its standard input and output, with the counting tool. */

import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { count } from './counting-tool.js';
import { Gates } from './gates.js';

const server = new McpServer({ name: 'counting', version: '1.0.0' });
const gates = new Gates();
const inputSchema = z.object({ label: z.string(), steps: z.number() });
server.registerTool('count', { inputSchema }, (given, { mcpReq }) =>
  count(given, { token: mcpReq._meta?.progressToken, notify: mcpReq.notify, gates }),
);
await server.connect(new StdioServerTransport());

/**
 * GET /v1/mcp: how the MCP servers behind the front are used (contract 10).
 */

import type { Exchange } from '../http/exchange.js';

export async function showMcp(exchange: Exchange): Promise<void> {
  exchange.watch();
  const servers = (await exchange.edge.mcp?.front.report()) ?? [];
  exchange.sendJson(200, { servers }, { 'Cache-Control': 'no-store' });
}

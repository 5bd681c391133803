/**
 * What the front of the MCP servers says of itself. Without one there are none of these.
 */

import { Gauge, Counter as PromCounter, type Registry } from 'prom-client';
import { FAILED_COUNT, type FrontCounts } from '../mcp/front-counts.js';
import { MCP_FAILURES, MCP_METRICS } from './mcp-names.js';

export function registerMcpMetrics(counts: FrontCounts, registry: Registry): void {
  const registers = [registry];
  for (const { name, help, count } of MCP_METRICS) {
    const Kind = name.endsWith('_total') ? PromCounter : Gauge;
    new Kind({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(counts.get(count));
      },
    });
  }
  new PromCounter({
    ...MCP_FAILURES,
    registers,
    labelNames: ['reason'],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(FAILED_COUNT)) this.inc({ reason }, counts.get(count));
    },
  });
}

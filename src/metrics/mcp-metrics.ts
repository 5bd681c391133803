/**
 * What the front of the MCP servers says of itself. Without one there are none of these.
 */

import { Counter as PromCounter, type Registry } from 'prom-client';
import { FAILED_COUNT, type FrontCounts } from '../mcp/front-counts.js';
import { registerLiveValue } from './live-value.js';
import { MCP_FAILURES, MCP_METRICS } from './mcp-names.js';

export function registerMcpMetrics(counts: FrontCounts, registry: Registry): void {
  for (const { name, help, count } of MCP_METRICS) {
    registerLiveValue(registry, name, help, () => counts.get(count));
  }
  new PromCounter({
    ...MCP_FAILURES,
    registers: [registry],
    labelNames: ['reason'],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(FAILED_COUNT)) this.inc({ reason }, counts.get(count));
    },
  });
}

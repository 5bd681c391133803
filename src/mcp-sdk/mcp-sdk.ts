/**
 * `gapless/mcp`: for MCP servers that are made with the official TypeScript SDK, version 1 or 2. Their response streams
 * can be resumed without a gap, and change events reach all of their processes. The SDK itself is no dependency: its
 * interfaces are met by their shape.
 */

export { GaplessEventStore, type GaplessEventStoreOptions } from './event-store.js';
export type { JsonRpcId, SdkTransport, ServerEvent } from './sdk-shapes.js';
export { GaplessServerEventBus, type GaplessServerEventBusOptions } from './server-event-bus.js';

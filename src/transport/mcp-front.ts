import type { ClientRequest, Verdict } from '../mcp/messages.js';

/** The front of the MCP servers, as an edge sees it. */
export interface McpFront {
  /** A name for a connection that may become a reader; no other edge gives the same. */
  newReader(): number;
  ask(request: ClientRequest): Promise<Verdict>;
  /** A reader that was granted a stream is off it. `deliveredSeq`: newest seq that has left the process. */
  left(reader: number, deliveredSeq: number): void;
  /** Has `endReader` called with those whose stream another connection reads from now on. They leave, in any case. */
  onEnd(endReader: (reader: number) => void): void;
}

import type { ClientRequest, ServerUse, Verdict } from '../../mcp/messages.js';

/** The front of the MCP servers, as an edge sees it. */
export interface McpFront {
  /** A name for a connection that may become a reader; no other edge gives the same. */
  newReader(): number;
  ask(request: ClientRequest): Promise<Verdict>;
  /** How the servers are used now. */
  report(): Promise<readonly ServerUse[]>;
  /**
   * A reader that was granted a stream is off it.
   * @param deliveredSeq newest seq that has left the process.
   * @param isRefused whether it was told that what comes next is gone.
   */
  left(reader: number, deliveredSeq: number, isRefused: boolean): void;
  /** Has `endReader` called with those whose stream another connection reads from now on. They leave, in any case. */
  onEnd(endReader: (reader: number) => void): void;
}

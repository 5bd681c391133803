/**
 * An edge's line to the front of the MCP servers.
 */

import type { ClientRequest, FromEdge, Left, ServerUse, ToEdge, Verdict } from '../../mcp/messages.js';
import type { McpFront } from '../../transport/mcp/mcp-front.js';
import { readerName } from './reader-name.js';

/** The edge's end of the line. */
export interface McpPort {
  postMessage(message: FromEdge, transfer?: readonly ArrayBuffer[]): void;
  on(event: 'message', listener: (message: ToEdge) => void): unknown;
}

/** How long the front may not know that a reader has left, where nobody waits for that. */
const FLUSH_MS = 20;

export class McpLink implements McpFront {
  readonly #port: McpPort;
  readonly #edge: number;
  /** Bounded by the connections: each has at most one request open. */
  readonly #pending = new Map<number, (verdict: Verdict) => void>();
  /** Bounded in the same way. */
  readonly #reports = new Map<number, (servers: readonly ServerUse[]) => void>();
  #lastId = 0;
  #lastReader = 0;
  /** Told with the next request, or soon: to wake the other thread costs more than all else here. */
  #left: Left[] = [];
  #flushing: NodeJS.Timeout | undefined;
  #endReader: (reader: number) => void = () => undefined;

  constructor(port: McpPort, edge: number) {
    this.#port = port;
    this.#edge = edge;
    port.on('message', (message) => this.#received(message));
  }

  newReader(): number {
    return readerName(++this.#lastReader, this.#edge);
  }

  ask(request: ClientRequest): Promise<Verdict> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#pending.set(id, resolve);
      this.#port.postMessage({ kind: 'request', id, request, left: this.#takeLeft() });
    });
  }

  report(): Promise<readonly ServerUse[]> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#reports.set(id, resolve);
      this.#port.postMessage({ kind: 'report', id, left: this.#takeLeft() });
    });
  }

  left(reader: number, deliveredSeq: number, isRefused: boolean): void {
    if (this.#left.push({ reader, deliveredSeq, isRefused }) === 1)
      this.#flushing = setTimeout(this.#flush, FLUSH_MS);
  }

  onEnd(endReader: (reader: number) => void): void {
    this.#endReader = endReader;
  }

  readonly #flush = (): void => {
    const left = this.#takeLeft();
    if (left.length > 0) this.#port.postMessage({ kind: 'left', left });
  };

  #takeLeft(): Left[] {
    clearTimeout(this.#flushing);
    const left = this.#left;
    this.#left = [];
    return left;
  }

  #received(message: ToEdge): void {
    if (message.kind === 'end') {
      this.#endReader(message.reader);
      return this.#flush();
    }
    if (message.kind === 'report') {
      this.#reports.get(message.id)?.(message.servers);
      this.#reports.delete(message.id);
      return;
    }
    this.#pending.get(message.id)?.(message.verdict);
    this.#pending.delete(message.id);
  }
}

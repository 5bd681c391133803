import { errorOf } from './client-error.js';
import { type Connection, streamPath } from './connection.js';

/** What a stream is made with; what is absent comes from the server's settings (contract 2.1). */
export interface StreamConfig {
  readonly retention?: { readonly events?: number; readonly bytes?: number; readonly ageMs?: number };
  readonly overflow?: 'evict' | 'reject';
  readonly ttlMs?: number;
}

/** Where a stream stands (contract 2.2). */
export interface StreamState extends Required<StreamConfig> {
  readonly name: string;
  readonly epoch: string;
  /** Lowest seq in memory, and in the durable log; null where there is no log. */
  readonly floor: number;
  readonly logFloor: number | null;
  readonly committed: number;
  readonly head: number;
  /** Of the frames in memory. */
  readonly bytes: number;
  readonly subscribers: number;
  readonly closed: boolean;
}

/** Lowest seq that can be read, wherever it is kept (contract 2.2). */
export function floorOf({ floor, logFloor }: Pick<StreamState, 'floor' | 'logFloor'>): number {
  return Math.min(floor, logFloor ?? floor);
}

/** Null when there is no such stream. @throws {GaplessError} */
export async function stateOf(connection: Connection, name: string): Promise<StreamState | null> {
  const response = await connection.ask(`${streamPath(name)}/state`);
  if (response.ok) return (await response.json()) as StreamState;
  const error = await errorOf(response);
  if (error.code === 'stream_not_found') return null;
  throw error;
}

/** Page by page. @throws {GaplessError} */
export async function* listStreams(
  connection: Connection,
  prefix: string,
): AsyncGenerator<StreamState, void, void> {
  for (let after: string | null = ''; after !== null; ) {
    const query = { prefix: prefix || undefined, after: after || undefined };
    const response = await connection.ask('/v1/streams', { query });
    if (!response.ok) throw await errorOf(response);
    const page = (await response.json()) as { streams: StreamState[]; next: string | null };
    yield* page.streams;
    after = page.next;
  }
}

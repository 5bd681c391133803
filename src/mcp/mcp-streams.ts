/**
 * What the front needs of the broker: streams to append messages to. Readers are the edges' business.
 */

import type { StreamRef } from '../broker/edge-stream.js';

/** `later`: there is no room, or the log cannot commit now; the same again may work soon. `gone`: there is no such stream. */
export type Appended = 'appended' | 'later' | 'too_large' | 'gone';

export interface McpStreams {
  /** @throws {RequestError} when there is no room for another stream */
  create(): Promise<StreamRef>;
  append(stream: StreamRef, message: string): Appended;
  /** Nothing more is appended; readers end when they have all. */
  close(stream: StreamRef): void;
  remove(stream: StreamRef): void;
  /** Has its time to live begin anew. False: there is no such stream any more. */
  touch(stream: StreamRef): boolean;
}

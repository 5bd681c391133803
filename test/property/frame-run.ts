import { FrameBatch, IdLine } from '#gapless/core/sse-frame.js';

/** An event as a test wants it published: text, or bytes for a binary one. */
export interface TestEvent {
  readonly type: string | null;
  readonly data: string | Uint8Array;
}

const encoder = new TextEncoder();

/** The events as whole frames, back to back, as a ring holds them. */
export function frameRun(epoch: string, firstSeq: number, events: readonly TestEvent[]): Uint8Array {
  const batch = new FrameBatch(1 << 24);
  for (const { type, data } of events) {
    const bytes = typeof data === 'string' ? encoder.encode(data) : data;
    if (typeof data === 'string') batch.pushText(bytes, 0, bytes.length, type);
    else batch.pushBinary(bytes, 0, bytes.length, type);
  }
  return joinFrames(epoch, firstSeq, batch);
}

/** The parts of a batch with an id line before each. */
export function joinFrames(epoch: string, firstSeq: number, batch: FrameBatch): Uint8Array {
  const id = new IdLine();
  const pieces: Uint8Array[] = [];
  for (let i = 0; i < batch.count; i++) {
    if (i === 0) id.start(epoch, firstSeq);
    else id.next();
    pieces.push(id.bytes.slice(0, id.length), batch.bytes.slice(batch.ends[i - 1] ?? 0, batch.ends[i]));
  }
  return new Uint8Array(Buffer.concat(pieces));
}

/** What a reader gets of a text: each of CR, CRLF and LF arrives as LF (contract 3.1). */
export function asRead(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\n');
}

import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { withDeadline } from '../support/deadline.js';
import { HttpResponseParser, type ResponseHead } from '../support/http-response-parser.js';

export interface RawAnswer {
  head: ResponseHead | undefined;
  body: Buffer;
  /** All that came, where more than one answer may have. */
  bytes: Buffer;
}

export interface RawOptions {
  /** The pieces go out one by one, each in a write of its own. */
  pieces: readonly Uint8Array[];
  /** Of the only request, where that is known: then the first answer is the only one. */
  method?: string;
}

/**
 * Sends bytes over a connection of its own and reads what comes: the answer to the one request, an event stream's
 * beginning, or, if it is not known what the bytes are, all until the broker closes after our end.
 */
export async function rawExchange(port: number, { pieces, method }: RawOptions): Promise<RawAnswer> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const chunks: Buffer[] = [];
  const body: Buffer[] = [];
  let head: ResponseHead | undefined;
  const answered = new Promise<void>((resolve) => {
    const parser = new HttpResponseParser({
      onHead: (given) => {
        head = given;
        if (given.headers.get('content-type') === 'text/event-stream') resolve();
      },
      onBody: (chunk) => body.push(chunk),
      onEnd: resolve,
    });
    if (method !== undefined) parser.expectResponseTo(method);
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (method !== undefined) parser.push(chunk);
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece);
    if (pieces.length > 1) await nextTurn();
  }
  if (method === undefined) socket.end();
  try {
    await withDeadline('an answer, or the end of the connection', answered);
  } finally {
    socket.destroy();
  }
  return { head, body: Buffer.concat(body), bytes: Buffer.concat(chunks) };
}

/** Cuts bytes at fractions of their length. */
export function split(bytes: Uint8Array, fractions: readonly number[]): Uint8Array[] {
  const cuts = fractions.map((fraction) => Math.floor(fraction * bytes.length)).sort((a, b) => a - b);
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length));
}

/** The same for a request, whose first line stays whole: the HTTP library answers 505 to one that comes in pieces. */
export function splitRequest(bytes: Uint8Array, fractions: readonly number[]): Uint8Array[] {
  const lineEnd = bytes.indexOf(0x0a) + 1;
  const [first = bytes, ...rest] = split(bytes.subarray(lineEnd), fractions);
  return [bytes.subarray(0, lineEnd + first.length), ...rest];
}

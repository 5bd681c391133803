/**
 * For servers that hand a stream on to browsers as an event stream of somebody else's protocol: each event's data goes
 * out as it was recorded.
 */

import type { GaplessClient } from './client.js';
import { GaplessError } from './client-error.js';
import { SseDecoder } from './sse-decoder.js';
import { floorOf } from './stream-state.js';

const HEADERS = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store, no-transform' };
const encoder = new TextEncoder();

/**
 * Records an event stream, such as the AI SDK gives to `consumeSseStream`: the data of each of its events is published,
 * and the stream is closed after the last. When the source fails, readers get what came before, and the end.
 *
 * @throws what the source threw; {@link GaplessError}
 */
export async function recordSse(
  client: GaplessClient,
  name: string,
  source: ReadableStream<string> | ReadableStream<Uint8Array>,
): Promise<void> {
  const publisher = client.publisher(name);
  try {
    await publisher.publishAll(dataOf(source));
  } catch (error) {
    if (!(error instanceof GaplessError)) {
      await publisher.flush();
      await client.closeStream(name);
    }
    throw error;
  }
  await client.closeStream(name);
}

/**
 * What the AI SDK asks of its resume endpoint: the recorded stream from its beginning and on to its end; 204 when
 * nothing is active, which is when there is no such stream or it has ended.
 */
export async function aiSdkResume(
  client: GaplessClient,
  name: string,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Response> {
  const state = await client.state(name);
  if (state === null || state.closed) return new Response(null, { status: 204 });
  const headers = { ...HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' };
  // By its epoch: were it removed since, `earliest` would make it anew, and that one never ends (contract 2.4).
  const beginning = `${state.epoch}.${floorOf(state) - 1}`;
  return new Response(sseBody(client, name, beginning, signal), { headers });
}

/**
 * The events after an integer, as an endpoint with `starting_after` gives them: the number counts a stream's events
 * from 1, and 0 is its beginning. A stream that has ended is given too. 400 for what is no such number, 404 where there
 * is no stream, and 410 where events after the number are gone, or the number is beyond the newest.
 */
export async function resumeAfter(
  client: GaplessClient,
  name: string,
  startingAfter: number,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Response> {
  if (!Number.isSafeInteger(startingAfter) || startingAfter < 0) return new Response(null, { status: 400 });
  const state = await client.state(name);
  if (state === null) return new Response(null, { status: 404 });
  const isGone = startingAfter + 1 < floorOf(state);
  if (isGone || startingAfter > state.committed) return new Response(null, { status: 410 });
  return new Response(sseBody(client, name, `${state.epoch}.${startingAfter}`, signal), { headers: HEADERS });
}

/** Ends when the stream was closed, and breaks visibly when it cannot go on. Reads no faster than it is read. */
function sseBody(
  client: GaplessClient,
  name: string,
  cursor: string,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const ended = signal === undefined ? gone.signal : AbortSignal.any([gone.signal, signal]);
  const events = client.subscribe(name, { cursor, signal: ended })[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await events.next();
      if (done === true) return controller.close();
      const lines = value.data.split('\n').map((line) => `data: ${line}\n`);
      controller.enqueue(encoder.encode(`${lines.join('')}\n`));
    },
    cancel(reason) {
      gone.abort(reason);
    },
  });
}

async function* dataOf(
  source: ReadableStream<string> | ReadableStream<Uint8Array>,
): AsyncGenerator<string, void, void> {
  const decoder = new SseDecoder();
  const reader = (source as ReadableStream<string | Uint8Array>).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const chunk = typeof value === 'string' ? encoder.encode(value) : value;
      for (const { data } of decoder.push(chunk)) if (data !== null) yield data;
    }
  } finally {
    // Where publishing fails, the model need not go on.
    await reader.cancel().catch(() => undefined);
  }
}

/**
 * A chat whose answers outlive every connection: an example of `gapless/client` that runs as it is.
 *
 *     node dist/main.js serve &
 *     node dist/client/examples/chat-server.js
 *     curl -N -d '{"id": "chat-1", "prompt": "hello"}' http://127.0.0.1:3000/api/chat
 *     curl -N http://127.0.0.1:3000/api/chat/chat-1/stream
 *
 * The model is a fake one. Its answer is recorded in a stream of the broker as it comes, and all who read it read from
 * there: who asked, other tabs, and who comes back after a reload. A chat has one stream, that of its newest answer; the
 * messages of before are for a database to keep. The browser's side is the
 * AI SDK's `useChat` with `resume: true`, or anything that reads an event stream.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { aiSdkResume, GaplessClient, GaplessError, recordSse, resumeAfter } from '../client.js';

/** Parts of an answer as the AI SDK has them in its UI message stream. */
type Part =
  | { readonly type: 'start' | 'finish' }
  | { readonly type: 'text-start' | 'text-end'; readonly id: string }
  | { readonly type: 'text-delta'; readonly id: string; readonly delta: string };

/** Gives an answer bit by bit. */
export type Model = (prompt: string) => AsyncIterable<string>;

const BODY_BYTES_MAX = 64 * 1024;
const WORD_MS = 100;
/** Chats have names that a stream can have (contract 2.4), less what marks them as ours. */
const CHAT = /^[A-Za-z0-9_-]{1,100}$/;

/** Says something about the prompt, a word at a time. */
export const fakeModel: Model = async function* (prompt) {
  for (const word of `You said: ${prompt}. I can say it as often as you reload.`.split(' ')) {
    await new Promise((resolve) => setTimeout(resolve, WORD_MS));
    yield `${word} `;
  }
};

export interface ChatServerOptions {
  readonly client: GaplessClient;
  readonly model: Model;
}

/**
 * - `POST /api/chat` with `{id, prompt}`: the model begins, and the answer is read as it comes.
 * - `GET /api/chat/:id/stream`: the answer of before, from its beginning; 204 when none is under way.
 * - `GET /api/chat/:id/events?starting_after=N`: what came after the first N parts, of an answer that is over too.
 */
export function createChatServer({ client, model }: ChatServerOptions): Server {
  return createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      // A reader has left, or the broker is away: the model goes on, and the reader comes back.
      if (!response.headersSent) response.writeHead(502);
      response.end();
      if (!response.destroyed) console.error(error);
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const [, id = '', what = ''] = /^\/api\/chat\/([^/]+)\/(stream|events)$/.exec(pathname) ?? [];
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    const { signal } = leaving;
    if (request.method === 'POST' && pathname === '/api/chat') {
      const asked = await readChat(request);
      if (asked === null) return void response.writeHead(400).end();
      const name = await renewed(asked.id);
      begin(name, asked.prompt);
      return pass(await resumeAfter(client, name, 0, { signal }), response);
    }
    if (!CHAT.test(id)) return void response.writeHead(404).end();
    if (what === 'stream') return pass(await aiSdkResume(client, nameOf(id), { signal }), response);
    const startingAfter = Number(searchParams.get('starting_after') ?? 0);
    return pass(await resumeAfter(client, nameOf(id), startingAfter, { signal }), response);
  }

  /** The model works for the stream, and not for who asked: nobody has to stay. */
  function begin(name: string, prompt: string): void {
    recordSse(client, name, sseOf(partsOf(model(prompt)))).catch(console.error);
  }

  /** Makes the stream of a chat anew, for its next answer. Who still reads the one before is cut off. */
  async function renewed(id: string): Promise<string> {
    const name = nameOf(id);
    await client.deleteStream(name).catch((error: unknown) => {
      if (!(error instanceof GaplessError) || error.code !== 'stream_not_found') throw error;
    });
    await client.createStream(name);
    return name;
  }
}

function nameOf(id: string): string {
  return `chat:${id}`;
}

async function* partsOf(words: AsyncIterable<string>): AsyncGenerator<Part> {
  const id = 'text';
  yield { type: 'start' };
  yield { type: 'text-start', id };
  for await (const delta of words) yield { type: 'text-delta', id, delta };
  yield { type: 'text-end', id };
  yield { type: 'finish' };
}

function sseOf(parts: AsyncIterable<Part>): ReadableStream<string> {
  const source = parts[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next();
      controller.enqueue(`data: ${done === true ? '[DONE]' : JSON.stringify(value)}\n\n`);
      if (done === true) controller.close();
    },
  });
}

async function readChat(request: IncomingMessage): Promise<{ id: string; prompt: string } | null> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > BODY_BYTES_MAX) return null;
  }
  try {
    const { id, prompt } = JSON.parse(text) as { id: unknown; prompt: unknown };
    return typeof id === 'string' && CHAT.test(id) && typeof prompt === 'string' ? { id, prompt } : null;
  } catch {
    return null;
  }
}

/** Hands a response of the client on, no faster than it is read. */
async function pass({ status, headers, body }: Response, response: ServerResponse): Promise<void> {
  response.writeHead(status, Object.fromEntries(headers));
  response.flushHeaders();
  if (body === null) return void response.end();
  for await (const chunk of Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0])) {
    if (!response.write(chunk))
      await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
  }
  response.end();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { GAPLESS_URL: url = 'http://127.0.0.1:8080', GAPLESS_TOKEN: token, PORT = '3000' } = process.env;
  const server = createChatServer({ client: new GaplessClient({ url, token }), model: fakeModel });
  server.listen(Number(PORT), '127.0.0.1', () => console.log(`http://127.0.0.1:${PORT}`));
}

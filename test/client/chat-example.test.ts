import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { GaplessClient } from '#gapless/client/client.js';
import { createChatServer, type Model } from '#gapless/client/examples/chat-server.js';
import { useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { freshStream } from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const WORDS = range(1, 12).map((n) => `word-${n} `);

describe('the chat of the examples', () => {
  const broker = useBroker();
  let proxy: TcpProxy;
  let server: ReturnType<typeof createChatServer>;
  let allowed = 0;
  let wake: () => void = () => undefined;

  /** Lets the model say so many words more, whether it has begun or not. */
  const step = (words: number): void => {
    allowed += words;
    wake();
  };

  /** Says as many words as the test lets it. */
  const model: Model = async function* () {
    for (const word of WORDS) {
      while (allowed === 0) await new Promise<void>((resolve) => (wake = resolve));
      allowed--;
      yield word;
    }
  };

  before(async () => {
    const client = new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });
    server = createChatServer({ client, model });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await TcpProxy.start((server.address() as AddressInfo).port);
  });

  after(async () => {
    await proxy.stop();
    server.closeAllConnections();
    server.close();
  });

  const at = (path: string): string => `http://127.0.0.1:${proxy.port}/api/chat${path}`;
  const ask = (id: string): Promise<Response> =>
    fetch(at(''), { method: 'POST', body: JSON.stringify({ id, prompt: 'hello' }) });

  /** Reads the text of an answer, until it has so many words or is over. */
  async function wordsOf(response: Response, count = Number.POSITIVE_INFINITY): Promise<string[]> {
    assert.equal(response.status, 200);
    const words: string[] = [];
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body as ReadableStream<Uint8Array>) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const part = block.slice('data: '.length);
        if (part !== '[DONE]' && JSON.parse(part).type === 'text-delta') words.push(JSON.parse(part).delta);
      }
      if (words.length >= count) break;
    }
    return words;
  }

  it('an answer outlives who asked for it: tabs that come in the midst of it, and after a cut, have all of it', async () => {
    const id = freshStream('cut').replaceAll('.', '-');
    const asked = await ask(id);
    step(4);
    assert.deepEqual(await wordsOf(asked, 4), WORDS.slice(0, 4));
    proxy.cutAll();
    const tabs = await Promise.all(range(1, 3).map(() => fetch(at(`/${id}/stream`))));
    for (const tab of tabs) assert.equal(tab.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
    step(8);
    for (const tab of tabs) assert.deepEqual(await wordsOf(tab), WORDS);
    assert.equal((await fetch(at(`/${id}/stream`))).status, 204, 'nothing is under way any more');
  });

  it('a reader that counts what it has is given the rest, while it comes and when it is over', async () => {
    const id = freshStream('count').replaceAll('.', '-');
    const asked = await ask(id);
    step(3);
    assert.deepEqual(await wordsOf(asked, 3), WORDS.slice(0, 3));
    // Two parts come before the first word.
    const rest = await fetch(at(`/${id}/events?starting_after=${2 + 3}`));
    step(9);
    assert.deepEqual(await wordsOf(rest), WORDS.slice(3));
    assert.deepEqual(await wordsOf(await fetch(at(`/${id}/events?starting_after=4`))), WORDS.slice(2));
    assert.equal((await fetch(at(`/${id}/events?starting_after=999`))).status, 410);
  });

  it('the next prompt of a chat has an answer of its own, and so have tabs that come to it', async () => {
    const id = freshStream('next').replaceAll('.', '-');
    const first = await ask(id);
    step(WORDS.length);
    assert.deepEqual(await wordsOf(first), WORDS);
    const second = await ask(id);
    step(2);
    assert.deepEqual(await wordsOf(second, 2), WORDS.slice(0, 2));
    const tab = await fetch(at(`/${id}/stream`));
    step(WORDS.length - 2);
    assert.deepEqual(await wordsOf(tab), WORDS);
  });

  it('nothing that was never asked is under way, and what is no chat is refused', async () => {
    assert.equal((await fetch(at('/never/stream'))).status, 204);
    assert.equal((await fetch(at('/never/events'))).status, 404);
    assert.equal((await fetch(at('/a.b/stream'))).status, 404);
    for (const body of ['', '{', '{"id":"a/b","prompt":""}', `{"id":"a","prompt":"${'x'.repeat(70_000)}"}`]) {
      assert.equal((await fetch(at(''), { method: 'POST', body })).status, 400);
    }
  });
});

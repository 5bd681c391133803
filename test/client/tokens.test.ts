import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  aiSdkResume,
  GaplessClient,
  publishTokens,
  readTokens,
  recordSse,
  resumeAfter,
} from '#gapless/client/client.js';
import { useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { freshStream } from '../support/gapless-client.js';

describe('token streams', () => {
  const broker = useBroker();
  const client = (): GaplessClient => new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });
  const tokens = range(1, 200).map((n) => ` token ${n}\n`);

  async function readAll(name: string): Promise<string[]> {
    const read: string[] = [];
    for await (const token of readTokens(client(), name)) read.push(token);
    return read;
  }

  it('are read from the beginning by any number of readers, while they come and after', async () => {
    const name = freshStream('answer');
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    async function* model(): AsyncGenerator<string> {
      yield* tokens.slice(0, 100);
      await released;
      yield* tokens.slice(100);
    }
    const publishing = publishTokens(client(), name, model());
    const readers = range(1, 3).map(() => readAll(name));
    release();
    await publishing;
    for (const read of [...(await Promise.all(readers)), await readAll(name)]) assert.deepEqual(read, tokens);
  });

  it('tell readers that their source failed, after all that came before', async () => {
    const name = freshStream('failing');
    async function* model(): AsyncGenerator<string> {
      yield 'one';
      throw new Error('out of tokens');
    }
    await assert.rejects(publishTokens(client(), name, model()), { message: 'out of tokens' });
    const reading = readTokens(client(), name);
    assert.equal((await reading.next()).value, 'one');
    await assert.rejects(reading.next(), { code: 'source_failed', message: 'out of tokens' });
  });

  it('let go of a reader who leaves while none comes', async () => {
    const name = freshStream('left');
    await client().publish(name, 'one');
    const reading = readTokens(client(), name);
    assert.equal((await reading.next()).value, 'one');
    const next = reading.next();
    assert.equal((await reading.return()).done, true);
    assert.equal((await next).done, true);
    while ((await client().state(name))?.subscribers !== 0)
      await new Promise((resolve) => setImmediate(resolve));
  });

  it('throw what their source did, also where readers cannot be told', async () => {
    const name = freshStream('untold');
    async function* model(): AsyncGenerator<string> {
      yield 'one';
      await client().closeStream(name);
      throw new Error('out of tokens');
    }
    await client().createStream(name);
    await assert.rejects(publishTokens(client(), name, model()), { message: 'out of tokens' });
  });

  it('tell readers when they are ended from outside, also while their source says nothing', async () => {
    const name = freshStream('ended');
    const ending = new AbortController();
    async function* model(): AsyncGenerator<string> {
      yield 'one';
      await new Promise(() => undefined);
    }
    const publishing = publishTokens(client(), name, model(), { signal: ending.signal });
    const reading = readTokens(client(), name);
    assert.equal((await reading.next()).value, 'one');
    ending.abort(new Error('somebody pressed stop'));
    await assert.rejects(publishing, { message: 'somebody pressed stop' });
    await assert.rejects(reading.next(), { code: 'source_failed', message: 'somebody pressed stop' });
    assert.equal((await client().state(name))?.closed, true);
  });

  it('that are recorded end where their source fails, after all that came before', async () => {
    const name = freshStream('broken');
    const parts = [sse([PARTS[0] ?? '']), new Error('the model is gone')];
    const source = new ReadableStream<string>({
      pull(controller) {
        const part = parts.shift();
        if (typeof part === 'string') controller.enqueue(part);
        else controller.error(part);
      },
    });
    await assert.rejects(recordSse(client(), name, source), { message: 'the model is gone' });
    assert.equal(await (await resumeAfter(client(), name, 0)).text(), sse(PARTS.slice(0, 1)));
    assert.equal((await aiSdkResume(client(), name)).status, 204);
  });

  const sse = (data: readonly string[]): string => data.map((text) => `data: ${text}\n\n`).join('');
  const PARTS = ['{"type":"start"}', '{"type":"text-delta","delta":"a"}', '[DONE]'];

  function sourceOf(text: string): ReadableStream<string> {
    return new ReadableStream({
      start(controller) {
        for (const character of text) controller.enqueue(character);
        controller.close();
      },
    });
  }

  it('of the AI SDK: its resume endpoint gives the active one whole, and 204 where none is', async () => {
    const name = freshStream('chat');
    assert.equal((await aiSdkResume(client(), name)).status, 204);
    await client().publish(name, PARTS[0] ?? '');
    const resumed = await aiSdkResume(client(), name);
    assert.equal(resumed.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
    await recordSse(client(), name, sourceOf(sse(PARTS.slice(1))));
    assert.equal(await resumed.text(), sse(PARTS));
    assert.equal((await aiSdkResume(client(), name)).status, 204);
  });

  it('of the AI SDK: one that goes before it is read is not made anew, and its answer breaks', async () => {
    const name = freshStream('chat');
    await client().publish(name, PARTS[0] ?? '');
    const removing: typeof fetch = async (...asked) => {
      const response = await fetch(...asked);
      if (String(asked[0]).endsWith('/state')) await client().deleteStream(name);
      return response;
    };
    const url = `http://127.0.0.1:${broker.port}`;
    const resumed = await aiSdkResume(new GaplessClient({ url, fetch: removing }), name);
    await assert.rejects(resumed.text(), { code: 'resume_unavailable' });
    assert.equal(await client().state(name), null);
  });

  it('after an integer: the events behind it, also when it has ended; refused where they are not there', async () => {
    const name = freshStream('response');
    assert.equal((await resumeAfter(client(), name, 0)).status, 404);
    await recordSse(client(), name, sourceOf(sse(PARTS)));
    for (const after of range(0, PARTS.length)) {
      assert.equal(await (await resumeAfter(client(), name, after)).text(), sse(PARTS.slice(after)));
    }
    assert.equal((await resumeAfter(client(), name, PARTS.length + 1)).status, 410);
    assert.equal((await resumeAfter(client(), name, -1)).status, 400);
    await client().createStream(`${name}-2`, { retention: { events: 1 } });
    await client().publishBatch(
      `${name}-2`,
      range(1, 5000).map((n) => ({ data: n })),
    );
    assert.equal((await resumeAfter(client(), `${name}-2`, 1)).status, 410);
  });

  it('leave no reader behind when a browser goes away', async () => {
    const name = freshStream('gone');
    await client().publish(name, 'one');
    const { body } = await aiSdkResume(client(), name);
    const reader = body?.getReader();
    await reader?.read();
    assert.equal((await client().state(name))?.subscribers, 1);
    await reader?.cancel();
    await eventually('it to be gone', async () => (await client().state(name))?.subscribers === 0);
  });
});

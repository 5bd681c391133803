import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient } from '#gapless/client/client.js';
import { useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { freshStream, publishLines } from '../support/gapless-client.js';
import { answers, type Script, ScriptedServer } from './scripted-server.js';

describe('a program that leaves a subscription of the client', () => {
  const broker = useBroker();
  const client = (): GaplessClient => new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });

  function untilSubscribers(stream: string, count: number): Promise<unknown> {
    return eventually(`${count} subscribers`, async () => {
      return (await client().state(stream))?.subscribers === count;
    });
  }

  it('is let go while it waits for an event, and no connection stays', async () => {
    const stream = freshStream('waiting');
    const iterator = client().subscribe(stream)[Symbol.asyncIterator]();
    const next = iterator.next();
    await untilSubscribers(stream, 1);
    assert.deepEqual(await iterator.return(), { done: true, value: undefined });
    assert.deepEqual(await next, { done: true, value: undefined });
    await untilSubscribers(stream, 0);
    assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  });

  it('is let go before it has asked for anything, and while another attempt is waited for', async () => {
    const server = await ScriptedServer.start(answers(503, null, { 'Retry-After': '3600' }));
    const far = new GaplessClient({ url: server.url });
    await far.subscribe('s')[Symbol.asyncIterator]().return();
    assert.equal(server.requests.length, 0);
    let isWaiting: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => (isWaiting = resolve));
    const onStatus = ({ state }: { state: string }): void => {
      if (state === 'waiting') isWaiting();
    };
    const iterator = far.subscribe('s', { onStatus })[Symbol.asyncIterator]();
    const next = iterator.next();
    await waiting;
    await iterator.return();
    assert.equal((await next).done, true);
    await server.stop();
  });

  it('is given nothing more once it has aborted, not even what had come already', async () => {
    const stream = freshStream('aborted');
    await publishLines(broker.port, stream, range(1, 5).map(String));
    const aborting = new AbortController();
    const { signal } = aborting;
    const seen: string[] = [];
    await assert.rejects(
      async () => {
        for await (const { data } of client().subscribe(stream, { cursor: 'earliest', signal }))
          if (seen.push(data) === 2) aborting.abort(new Error('enough'));
      },
      { message: 'enough' },
    );
    assert.deepEqual(seen, ['1', '2']);
  });

  it('makes place for another: two at a time would each miss what the other is given', async () => {
    const stream = freshStream('shared');
    await publishLines(broker.port, stream, ['one', 'two', 'three']);
    const events = client().subscribe(stream, { cursor: 'earliest' });
    const first = events[Symbol.asyncIterator]();
    assert.equal((await first.next()).value?.data, 'one');
    await assert.rejects(events[Symbol.asyncIterator]().next(), TypeError);
    assert.equal((await first.next()).value?.data, 'two');
    await first.return();
    const second = events[Symbol.asyncIterator]();
    assert.equal((await second.next()).value?.data, 'three');
    await second.return();
  });

  it('need not wait for a refusal that does not come to its end, and nor does who stays', async () => {
    const stalls: Script = (_request, response) => {
      response.writeHead(503, { 'Content-Type': 'application/problem+json', 'Content-Length': '100' });
      response.write('{');
    };
    const server = await ScriptedServer.start(stalls, answers(404, { code: 'stream_not_found', title: 'x' }));
    const staying = new GaplessClient({ url: server.url }).subscribe('s', { idleTimeoutMs: 50, retryMs: 1 });
    await assert.rejects(staying[Symbol.asyncIterator]().next(), { code: 'stream_not_found' });
    await server.stop();
  });
});

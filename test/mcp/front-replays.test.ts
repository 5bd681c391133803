import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { McpClient, messagesOf, progressOf, untilMessages } from '../support/mcp-client.js';
import { McpUpstream, type UpstreamExchange } from '../support/mcp-upstream.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());
const FLAGS = [
  ...['--mcp', `/mcp=${upstream.url}`, '--memory', '64MiB'],
  ...['--retention-bytes', '16MiB', '--stream-bytes-max', '24MiB', '--retention-events', '0'],
];
const MIB = 1024 * 1024;
const PADDING = 'x'.repeat(32 * 1024);

/** Progress of some eight MiB in all, and the result. */
function answerAtLength(there: UpstreamExchange, count: number): void {
  there.stream();
  for (let progress = 1; progress <= count; progress++) {
    const params = { progressToken: 1, progress, message: PADDING };
    there.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
  }
  there.finish({ done: true });
}

describeOnEdges('12.3 replays', FLAGS, (broker) => {
  it('12.3 (26) who comes late gets a long answer whole, again and again, to its end', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    await call.untilEvents(1);
    call.cut();
    const count = (8 * MIB) / PADDING.length;
    answerAtLength(await upstream.nextCall(), count);
    for (let round = 0; round < 2; round++) {
      const again = await client.read(call.lastEventId);
      assert.equal(await again.untilEnded(), 'end');
      assert.deepEqual(progressOf(again), range(1, count));
      assert.deepEqual(messagesOf(again).at(-1)?.result, { done: true });
    }
  });

  it('12.3 (6, 26) from each message of an answer the rest can be had, with its end, on any connection', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1);
    const there = (await upstream.nextCall()).stream();
    for (const progress of range(1, 12)) there.progress(progress);
    there.finish({ done: true });
    await call.untilEnded();
    for (const [index, { id }] of call.events.slice(0, -1).entries()) {
      const again = await client.read(id);
      assert.equal(await again.untilEnded(), 'end');
      assert.deepEqual(progressOf(again), range(index + 1, 12));
      assert.deepEqual(messagesOf(again).at(-1)?.result, { done: true });
    }
  });

  it('12.3 (25) who never comes back has the results of its other calls, each once', async () => {
    const client = await McpClient.open(broker.port);
    const broken = await client.call('broken');
    const atBroken = (await upstream.nextCall()).stream().progress(1);
    await untilMessages(broken, 1);
    broken.cut();
    for (const id of range(1, 10)) {
      const call = await client.call(id);
      const there = (await upstream.nextCall()).stream().progress(1).progress(2);
      atBroken.progress(id + 1);
      there.finish({ of: id });
      await call.untilEnded();
      assert.deepEqual(progressOf(call), [1, 2]);
      assert.deepEqual(messagesOf(call).slice(2), [{ jsonrpc: '2.0', id, result: { of: id } }]);
    }
    atBroken.finish({});
    const own = await client.read();
    await own.untilEvents(1);
    assert.deepEqual(messagesOf(own), [], 'nor on the session’s own stream');
    own.cut();
  });
});

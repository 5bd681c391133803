import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient } from '#gapless/client/client.js';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { BrokerProcess, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';

describe('an event store by itself', () => {
  const broker = useBroker();

  it('keeps a session by the same rules when it goes on after its time to live', async () => {
    const client = new GaplessClient({ url: `http://127.0.0.1:${broker.port}` });
    const limits = { eventsMax: 7, bytesMax: 70_000, ttlMs: 1000 };
    const store = new GaplessEventStore({ broker: client, session: 'idle', ...limits });
    const message = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    const first = await store.storeEvent('_GET_stream', message);
    await eventually('the end of its time', async () => (await client.state('mcp:idle')) === null);
    await store.storeEvent('_GET_stream', message);
    const state = await client.state('mcp:idle');
    assert.equal(state?.ttlMs, 1000);
    assert.deepEqual(state?.retention, { events: 7, bytes: 70_000, ageMs: 0 });
    // What was kept before is gone, and who comes back from there is told so.
    const methods: unknown[] = [];
    const send = async (_id: string, { method }: { method?: string }): Promise<void> => {
      methods.push(method);
    };
    assert.equal(await store.replayEventsAfter(first, { send }), '_GET_stream');
    assert.equal(methods[0], 'notifications/message');
  });

  it('goes on, in order, at a broker that has lost everything, and says so to who comes back', async (context) => {
    const before = await BrokerProcess.start();
    const client = new GaplessClient({ url: `http://127.0.0.1:${before.port}` });
    const store = new GaplessEventStore({ broker: client, session: 'survivor', eventsMax: 1234 });
    const message = (n: number): object => ({ jsonrpc: '2.0', id: n, result: {} });
    const first = await store.storeEvent('a', message(0));
    await before.kill();
    const broker = await before.startAgain();
    context.after(() => broker.kill());
    const resolved: number[] = [];
    const storing = range(1, 50).map(async (n) => {
      const id = await store.storeEvent('a', message(n));
      resolved.push(n);
      return Number(id.split('.').at(-1));
    });
    assert.deepEqual(await Promise.all(storing), range(1, 50));
    assert.deepEqual(resolved, range(1, 50));
    assert.equal((await client.state('mcp:survivor'))?.retention.events, 1234);
    const told: unknown[] = [];
    await store.replayEventsAfter(first, { send: async (_id, answer) => void told.push(answer) });
    const [{ id, error }] = told as [{ id: number; error: { code: number } }];
    assert.deepEqual([told.length, id, error.code], [1, 0, -32017]);
  });

  it('stores in the order of its calls, whatever stream they are for', async () => {
    const store = new GaplessEventStore({
      broker: { url: `http://127.0.0.1:${broker.port}` },
      session: 'order',
    });
    const resolved: number[] = [];
    const ids = await Promise.all(
      range(1, 300).map(async (n) => {
        const id = await store.storeEvent(`stream-${n % 7}`, { jsonrpc: '2.0', method: `${n}` });
        resolved.push(n);
        return id;
      }),
    );
    assert.deepEqual(resolved, range(1, 300));
    assert.deepEqual(
      ids.map((id) => Number(id.split('.').at(-1))),
      range(1, 300),
    );
  });
});

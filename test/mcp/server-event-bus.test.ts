import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { GaplessClient } from '#gapless/client/client.js';
import { GaplessServerEventBus, type ServerEvent } from '#gapless/mcp-sdk/mcp-sdk.js';
import { BrokerProcess, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import { freshStream } from '../support/gapless-client.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { connectStatelessClient, startStatelessServer } from './stateless-server.js';

/** A bus, as one process has it, with what its listener heard. */
async function startBus(
  context: TestContext,
  port: number,
  stream: string,
): Promise<{ bus: GaplessServerEventBus; heard: ServerEvent[]; errors: unknown[] }> {
  const [heard, errors]: [ServerEvent[], unknown[]] = [[], []];
  const bus = new GaplessServerEventBus({
    broker: { url: `http://127.0.0.1:${port}` },
    stream,
    retryMs: 20,
    onError: (error) => errors.push(error),
  });
  context.after(() => bus.close());
  bus.subscribe((event) => heard.push(event));
  await bus.ready;
  return { bus, heard, errors };
}

const updated = (n: number): ServerEvent => ({ kind: 'resource_updated', uri: `test://${n}` });

describe('a bus of server events', () => {
  const broker = useBroker('--retry-ms', '20');

  it('brings what any process publishes to the listeners of all, in one order', async (context) => {
    const stream = freshStream('bus');
    const nodes = await Promise.all(range(1, 3).map(() => startBus(context, broker.port, stream)));
    for (const n of range(1, 30)) nodes[n % 3]?.bus.publish(updated(n));
    for (const { heard } of nodes) await eventually('all events', () => heard.length === 30);
    assert.deepEqual(nodes[1]?.heard, nodes[0]?.heard);
    assert.deepEqual(nodes[2]?.heard, nodes[0]?.heard);
    for (const node of range(0, 2)) {
      const own = range(1, 30).filter((n) => n % 3 === node);
      const inOrder = nodes[0]?.heard.filter((event) =>
        own.some((n) => 'uri' in event && event.uri === `test://${n}`),
      );
      assert.deepEqual(inOrder, own.map(updated));
    }
  });

  it('loses and repeats nothing when connections break', async (context) => {
    const proxy = await TcpProxy.start(broker.port);
    context.after(() => proxy.stop());
    const stream = freshStream('bus');
    const behind = await startBus(context, proxy.port, stream);
    const { bus } = await startBus(context, broker.port, stream);
    for (const n of range(1, 60)) {
      bus.publish(updated(n));
      if (n % 20 === 0) {
        await eventually('the events before the break', () => behind.heard.length === n);
        proxy.cutAll();
      }
    }
    bus.publish(updated(61));
    await eventually('the last event', () => behind.heard.length >= 61);
    assert.deepEqual(behind.heard, range(1, 61).map(updated));
  });

  it('says that everything may have changed when the broker has lost events', async (context) => {
    const first = await BrokerProcess.start('--retry-ms', '20');
    const { bus, heard } = await startBus(context, first.port, freshStream('bus'));
    bus.publish(updated(1));
    await eventually('the event before', () => heard.shift());
    await first.kill();
    const second = await first.startAgain();
    context.after(() => second.kill());
    await eventually('the warning', () => heard.length >= 3);
    assert.deepEqual(
      heard.map(({ kind }) => kind),
      ['tools_list_changed', 'prompts_list_changed', 'resources_list_changed'],
    );
    bus.publish(updated(2));
    await eventually('the event after', () => heard.length > 3);
    assert.deepEqual(heard[3], updated(2));
  });

  it('goes on when a listener throws, or leaves', async (context) => {
    const { bus, heard, errors } = await startBus(context, broker.port, freshStream('bus'));
    bus.subscribe(() => {
      throw new Error('a listener’s own');
    });
    const gone: ServerEvent[] = [];
    const leave = bus.subscribe((event) => gone.push(event));
    leave();
    leave();
    bus.publish(updated(1));
    await eventually('the event', () => heard.length === 1 && errors.length === 1);
    assert.deepEqual(gone, []);
  });

  it('says when its stream was closed, and asks no more than now and then', async (context) => {
    const stream = freshStream('bus');
    const { errors } = await startBus(context, broker.port, stream);
    await new GaplessClient({ url: `http://127.0.0.1:${broker.port}` }).closeStream(stream);
    const [error] = await eventually('the error', () => errors.length > 0 && errors);
    assert.equal((error as { code?: string }).code, 'stream_closed');
    assert.equal(errors.length, 1);
  });

  it('lets clients of one node of a server, version 2, hear of a change on another', async (context) => {
    const stream = freshStream('bus');
    const nodes = await Promise.all(
      range(1, 2).map(async () => {
        const { bus } = await startBus(context, broker.port, stream);
        const { url } = await startStatelessServer(context, bus);
        return { bus, url };
      }),
    );
    const [one, two] = nodes;
    assert.ok(one !== undefined && two !== undefined);
    const client = await connectStatelessClient(context, one.url);
    const told = new Promise<void>((resolve) => {
      client.setNotificationHandler('notifications/tools/list_changed', () => resolve());
    });
    await client.listen({ toolsListChanged: true });
    two.bus.publish({ kind: 'tools_list_changed' });
    await withDeadline('the change', told);
  });

  it('makes its stream, and keeps a thousand events of it', async (context) => {
    const stream = freshStream('bus');
    await startBus(context, broker.port, stream);
    const state = await new GaplessClient({ url: `http://127.0.0.1:${broker.port}` }).state(stream);
    assert.equal(state?.retention.events, 1000);
  });
});

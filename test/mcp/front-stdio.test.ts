import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BrokerProcess, useBroker, useStartedBroker } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { request } from '../support/http.js';
import {
  initializeRequest,
  McpClient,
  messagesOf,
  progressOf,
  untilMessages,
} from '../support/mcp-client.js';
import { scrape, total } from '../support/prometheus.js';

const SERVER = fileURLToPath(new URL('../support/mcp-stdio-server.js', import.meta.url));

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const FLAGS = [
  '--mcp',
  `/files=stdio:'${process.execPath}' ${SERVER} --with a,b`,
  '--mcp',
  '/nowhere=stdio:/no/such/program',
  '--body-bytes-max',
  '256KiB',
];
/** What an operator has exported for the commands beside the broker, and the broker for itself. */
const ENV = { GAPLESS_TOKEN: 'gpl_secret', GAPLESS_RETRY_MS: '1s', NODE_NO_WARNINGS: '1' };

describe('12.7 a server over standard input and output', () => {
  const broker = useStartedBroker(() => BrokerProcess.launch({ flags: FLAGS, env: ENV }));
  const open = () => McpClient.open(broker.port, { path: '/files' });
  const tool = (client: McpClient, id: number, name: string) =>
    client.call(id, 'tools/call', { name, _meta: { progressToken: id } });

  async function pidOf(client: McpClient): Promise<number> {
    const call = await tool(client, client.newId() + 1000, 'pid');
    await call.untilEnded();
    return messagesOf(call)[0]?.result?.pid as number;
  }

  it('12.7 each call gets its own progress and its own answer, whoever is there', async () => {
    const client = await open();
    const a = await tool(client, 1, 'hold');
    const b = await tool(client, 2, 'hold');
    await Promise.all([untilMessages(a, 1), untilMessages(b, 1)]);
    a.cut();
    const release = await tool(client, 3, 'release');
    await Promise.all([release.untilEnded(), b.untilEnded()]);
    const again = await client.read(a.lastEventId);
    await again.untilEnded();
    assert.deepEqual(progressOf(again), [2]);
    assert.deepEqual(messagesOf(again).at(-1)?.result, { held: 1 });
    assert.deepEqual(progressOf(b), [1, 2]);
    assert.deepEqual(messagesOf(b).at(-1)?.result, { held: 2 });
  });

  it('12.7 each session has a process of its own, which ends with it', async () => {
    const [one, other] = [await open(), await open()];
    const [pid, otherPid] = [await pidOf(one), await pidOf(other)];
    assert.notEqual(pid, otherPid);
    await one.delete();
    await eventually('the end of the process', () => !isAlive(pid));
    assert.ok(isAlive(otherPid));
  });

  it('12.7 what it asks in the midst of a call comes with the call, and the answer gets back', async () => {
    const client = await open();
    const call = await tool(client, 1, 'ask');
    const [asked] = await untilMessages(call, 1);
    assert.equal(asked?.method, 'sampling/createMessage');
    await client.post({ jsonrpc: '2.0', id: asked?.id, result: 'blue' });
    await call.untilEnded();
    assert.deepEqual(messagesOf(call).at(-1)?.result, { picked: 'blue' });
  });

  it('12.5 a call that was cancelled is let go of, although the program says nothing of it any more', async () => {
    const underWay = async () => total(await scrape(broker.port), 'gapless_mcp_calls_under_way');
    const before = await underWay();
    const client = await open();
    const call = await tool(client, 1, 'hold');
    await untilMessages(call, 1);
    assert.equal((await client.notify('notifications/cancelled', { requestId: 1 })).status, 202);
    assert.equal(await call.untilEnded(), 'end');
    assert.deepEqual(progressOf(call), [1]);
    assert.equal(messagesOf(call).length, 1);
    assert.equal(await underWay(), before);
    await (await tool(client, 2, 'release')).untilEnded();
    await client.delete();
  });

  it('12.7 a program has the environment, but neither the settings nor the token of an operator', async () => {
    const client = await open();
    const call = await tool(client, 1, 'environment');
    await call.untilEnded();
    const { names } = messagesOf(call).at(-1)?.result as { names: string[] };
    assert.ok(names.includes('NODE_NO_WARNINGS') && names.includes('PATH'), names.join());
    assert.deepEqual(
      names.filter((name) => name.startsWith('GAPLESS_')),
      [],
    );
    await client.delete();
  });

  it('12.7 lines that are no message change nothing', async () => {
    const client = await open();
    const call = await tool(client, 1, 'garbage');
    await call.untilEnded();
    assert.deepEqual(messagesOf(call).at(-1)?.result, { after: 'garbage' });
  });

  it('12.7 (20) a process that ends takes its calls with it, and the next call starts another', async () => {
    const client = await open();
    const pid = await pidOf(client);
    const held = await tool(client, 1, 'hold');
    await untilMessages(held, 1);
    const last = await tool(client, 2, 'die');
    await Promise.all([held.untilEnded(), last.untilEnded()]);
    for (const call of [held, last]) assert.equal(messagesOf(call).at(-1)?.error?.data?.reason, 'broken');
    assert.notEqual(await pidOf(client), pid);
  });

  it('12.7 what a program does not read is refused once it is too much', async () => {
    const client = await open();
    await (await tool(client, 1, 'deaf')).untilEnded();
    const data = 'x'.repeat(60_000);
    const refused = await eventually('a refusal', async () => {
      const answer = await client.notify('notifications/message', { data });
      return answer.status === 202 ? undefined : answer;
    });
    assert.equal(refused.status, 502);
    const { error } = refused.json<{ error: { code: number; data: unknown } }>();
    assert.deepEqual([error.code, error.data], [-32016, { reason: 'silent' }]);
    const call = await tool(client, 2, 'pid');
    await call.untilEnded();
    assert.deepEqual(messagesOf(call).at(-1)?.error?.data, { reason: 'silent' });
    await client.delete();
  });

  it('12.7 a program that is not there is answered for', async () => {
    const answer = await request(broker.port, initializeRequest({ path: '/nowhere' }));
    assert.equal(answer.status, 502);
    assert.equal(answer.json<{ error: { data: { reason: string } } }>().error.data.reason, 'unreachable');
  });

  it('12.7 no process is left behind', async () => {
    const pid = await pidOf(await open());
    await broker.process.stop();
    assert.ok(!isAlive(pid));
  });
});

describe('12.7 a silent server over standard input and output', () => {
  const broker = useBroker('--mcp', `/mcp=stdio:'${process.execPath}' ${SERVER}`, '--mcp-silence-ms', '400');

  it('12.7 the call ends, and a slow start is no silence', async () => {
    const client = await McpClient.open(broker.port);
    const call = await client.call(1, 'tools/call', { name: 'hold' });
    await call.untilEnded();
    assert.equal(messagesOf(call).at(-1)?.error?.data?.reason, 'silent');
  });
});

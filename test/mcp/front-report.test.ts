import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { assertProblem } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { McpClient, untilMessages } from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { bearer, Files, Issuer, keySetOf } from '../support/tokens.js';

const upstream = await McpUpstream.start();
upstream.listens = true;
const files = new Files();
const issuer = await Issuer.create('ES256');
const keysFile = files.write('keys.json', keySetOf(issuer));
const operator = bearer(await issuer.grant({ admin: true }, { sub: 'operator' }));
const caller = bearer(await issuer.grant({ publish: ['mcp:*'] }, { sub: 'caller' }));
after(() => upstream.stop());

const FLAGS = ['--mcp', `/one=${upstream.url}`, '--mcp', `/two=${upstream.url}`, '--retention-events', '4'];

async function uses(port: number): Promise<Record<string, number[]>> {
  const answer = await request(port, { path: '/v1/mcp', headers: operator });
  assert.equal(answer.status, 200, answer.text);
  const { servers } = answer.json<{ servers: Record<string, unknown>[] }>();
  return Object.fromEntries(
    servers.map(({ path, sessions, calls, readers, refusedResumes }) => [
      path,
      [sessions, calls, readers, refusedResumes],
    ]),
  );
}

describeOnEdges('10 how MCP servers are used', [...FLAGS, '--jwt-keys-file', keysFile], (broker) => {
  /** Sessions, calls under way, readers and refused resumes of each server. */
  const areSoon = (expected: Record<string, number[]>) =>
    eventually(JSON.stringify(expected), async () => {
      const found = await uses(broker.port);
      return JSON.stringify(found) === JSON.stringify(expected);
    });

  it('10 of each server: sessions, calls, readers, and who came back to messages that are gone', async () => {
    assert.deepEqual(await uses(broker.port), { '/one': [0, 0, 0, 0], '/two': [0, 0, 0, 0] });
    const options = { headers: caller, path: '/two' };
    const [client, other] = [
      await McpClient.open(broker.port, options),
      await McpClient.open(broker.port, options),
    ];
    const own = await other.read();
    const call = await client.call(1);
    const there = (await upstream.nextCall()).stream();
    there.progress(0);
    await untilMessages(call, 1);
    await areSoon({ '/one': [0, 0, 0, 0], '/two': [2, 1, 2, 0] });
    call.cut();
    await areSoon({ '/one': [0, 0, 0, 0], '/two': [2, 1, 1, 0] });
    const lastEventId = call.lastEventId;
    for (let n = 1; n <= 100; n++) there.progress(n);
    there.finish({});
    await areSoon({ '/one': [0, 0, 0, 0], '/two': [2, 0, 1, 0] });
    const again = await client.read(lastEventId);
    await again.untilEnded();
    await areSoon({ '/one': [0, 0, 0, 0], '/two': [2, 0, 1, 1] });
    const metrics = await request(broker.port, { path: '/metrics', headers: operator });
    assert.match(metrics.text, /^gapless_mcp_resumes_refused_total 1$/m);
    own.cut();
    await client.delete();
    await areSoon({ '/one': [0, 0, 0, 0], '/two': [1, 0, 0, 1] });
  });

  it('9.1, 10 it is for admins', async () => {
    assertProblem(await request(broker.port, { path: '/v1/mcp' }), 401, 'unauthorized');
    const answer = await request(broker.port, { path: '/v1/mcp', headers: caller });
    assertProblem(answer, 403, 'forbidden');
  });
});

describe('10 a broker that is no front', () => {
  const broker = useBroker();

  it('10 has no servers to tell of', async () => {
    const answer = await request(broker.port, { path: '/v1/mcp' });
    assert.deepEqual(answer.json(), { servers: [] });
  });
});

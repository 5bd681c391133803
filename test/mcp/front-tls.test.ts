import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { it, type TestContext } from 'node:test';
import { createServer } from 'node:tls';
import { BrokerProcess } from '../support/broker-process.js';
import { makeCertificate } from '../support/certificate.js';
import { temporaryDirectory } from '../support/durable-broker.js';
import { request } from '../support/http.js';
import { initializeRequest, McpClient, messagesOf } from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';

/** A server behind TLS, and a front of it that trusts its certificate, or does not. */
async function startFront(
  context: TestContext,
  { trusted }: { trusted: boolean },
): Promise<{ upstream: McpUpstream; broker: BrokerProcess }> {
  const upstream = await McpUpstream.start();
  const { cert, key } = makeCertificate(temporaryDirectory(context), 'server');
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (secure) => {
    const plain = connect(upstream.port, '127.0.0.1');
    secure.pipe(plain).pipe(secure);
    secure.on('error', () => plain.destroy());
    plain.on('error', () => secure.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const broker = await BrokerProcess.launch({
    flags: ['--mcp', `/mcp=https://127.0.0.1:${port}/mcp`],
    env: trusted ? { NODE_EXTRA_CA_CERTS: cert } : {},
  });
  context.after(async () => {
    await broker.stop();
    server.close();
    await upstream.stop();
  });
  return { upstream, broker };
}

it('12.2 a server may be behind TLS', async (context) => {
  const { upstream, broker } = await startFront(context, { trusted: true });
  const client = await McpClient.open(broker.port);
  for (const id of [1, 2]) {
    const called = client.call(id);
    const there = await upstream.nextCall();
    there.stream().progress(id).finish({ ok: true });
    const call = await called;
    await call.untilEnded();
    assert.deepEqual(messagesOf(call).at(-1)?.result, { ok: true });
  }
});

it('12.6 a server whose certificate nobody trusts is none', async (context) => {
  const { broker } = await startFront(context, { trusted: false });
  const answer = await request(broker.port, initializeRequest({}));
  assert.equal(answer.status, 502);
  assert.deepEqual(answer.json<{ error: { data: unknown } }>().error.data, { reason: 'unreachable' });
});

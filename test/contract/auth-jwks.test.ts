import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, it } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { assertProblem } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { bearer, Issuer, keySetOf } from '../support/tokens.js';

/** An issuer's key set on the web, that can change, fail and count. */
class KeyServer {
  requests = 0;
  status = 200;
  headers: Record<string, string> = {};
  readonly #server: Server;

  private constructor(public text: string) {
    this.#server = createServer((_req, res) => {
      this.requests++;
      res.writeHead(this.status, this.headers).end(this.text);
    });
    after(() => this.#server.close());
  }

  static async start(text: string): Promise<KeyServer> {
    const server = new KeyServer(text);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/keys`;
  }
}

async function stopped(broker: BrokerProcess): Promise<void> {
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
}

async function list(broker: BrokerProcess, issuer: Issuer) {
  return request(broker.port, { path: '/v1/streams', headers: bearer(await issuer.grant({ admin: true })) });
}

it('9.1 keys are fetched at the start, and again when a token names a new one', async () => {
  const [first, second] = [await Issuer.create('RS256'), await Issuer.create('ES256')];
  const server = await KeyServer.start(keySetOf(first));
  const broker = await BrokerProcess.start('--jwks-url', server.url, '--threads', '2');
  assert.equal((await list(broker, first)).status, 200);
  assert.equal(server.requests, 1);
  server.text = keySetOf(first, second);
  assert.equal((await list(broker, second)).status, 200);
  assert.equal((await list(broker, first)).status, 200);
  server.text = keySetOf(second);
  broker.signal('SIGHUP');
  await broker.until('reloaded');
  assert.equal(assertProblem(await list(broker, first), 401, 'unauthorized').reason, 'unknown_key');
  assert.equal((await list(broker, second)).status, 200);
  await stopped(broker);
});

it('9.1 tokens with made-up keys do not make the broker fetch without end', async () => {
  const issuer = await Issuer.create('ES256');
  const server = await KeyServer.start(keySetOf(issuer));
  const broker = await BrokerProcess.start('--jwks-url', server.url);
  for (let count = 0; count < 20; count++) {
    const token = await issuer.sign({}, { kid: `made-up-${count}` });
    const response = await request(broker.port, { path: '/v1/streams', headers: bearer(token) });
    assertProblem(response, 401, 'unauthorized');
  }
  assert.equal(server.requests, 6);
  await stopped(broker);
});

it('9.1 while the issuer is down at the start tokens are 503 keys_unavailable, and good when it is up', async () => {
  const issuer = await Issuer.create('EdDSA');
  const server = await KeyServer.start(keySetOf(issuer));
  server.status = 500;
  const broker = await BrokerProcess.start('--jwks-url', server.url);
  const refused = await list(broker, issuer);
  assertProblem(refused, 503, 'keys_unavailable');
  assert.match(refused.header('retry-after') ?? '', /^\d+$/);
  server.status = 200;
  assert.equal((await list(broker, issuer)).status, 200);
  // What was fetched counts on while the issuer is down again.
  server.status = 500;
  broker.signal('SIGHUP');
  await broker.until('reloaded');
  assert.equal((await list(broker, issuer)).status, 200);
  await stopped(broker);
});

it('9.1 a redirect, and a set that is too large or none, are no keys', async () => {
  const issuer = await Issuer.create('ES256');
  const good = await KeyServer.start(keySetOf(issuer));
  const server = await KeyServer.start('');
  server.status = 302;
  server.headers = { Location: good.url };
  const broker = await BrokerProcess.start('--jwks-url', server.url);
  assertProblem(await list(broker, issuer), 503, 'keys_unavailable');
  assert.equal(good.requests, 0);
  server.status = 200;
  server.headers = {};
  for (const text of ['<html>', '{"keys": {}}', `{"keys": [], "x": "${'x'.repeat(2 ** 20)}"}`]) {
    server.text = text;
    assertProblem(await list(broker, issuer), 503, 'keys_unavailable');
  }
  await stopped(broker);
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { assertProblem, freshStream, publish, publishRequest, stateOf } from '../support/gapless-client.js';
import { encodeRequest, HttpConnection, type HttpRequest, type HttpResponse } from '../support/http.js';
import { Files, Issuer, keySetOf } from '../support/tokens.js';

/** Asks the broker under another name than its address. */
async function askAs(host: string, port: number, request: HttpRequest): Promise<HttpResponse> {
  const connection = await HttpConnection.open(port);
  const asked = encodeRequest(request).toString('latin1').replace('Host: 127.0.0.1', `Host: ${host}`);
  connection.send(asked);
  const response = await connection.nextResponse(`a request to ${host}`);
  connection.destroy();
  return response;
}

const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

describe('9.2 a broker without keys, and the names it is called by', () => {
  const broker = useBroker('--host-names', 'App.example,other.example');

  it('9.2 a name that somebody may have led here reads nothing, and does nothing', async () => {
    const stream = freshStream('rebound');
    await publish(broker.port, stream, 'secret');
    const path = `/v1/streams/${stream}`;
    const requests: HttpRequest[] = [
      publishRequest(stream, 'forged'),
      { path: `${path}?cursor=earliest` },
      { path: `${path}?cursor=earliest`, headers: { Accept: 'text/event-stream' } },
      { path: `${path}?cursor=earliest`, headers: HANDSHAKE },
      { path: `${path}/state` },
      { path: `${path}/readers` },
      { method: 'PUT', path, body: '{}' },
      { method: 'POST', path: `${path}/close` },
      { method: 'DELETE', path },
      { path: '/v1/streams' },
      { path: `/v1/streams?stream=${stream}`, headers: { Accept: 'text/event-stream' } },
      { path: '/v1/streams?prefix=', headers: { Accept: 'text/event-stream' } },
      { path: '/v1/activity' },
      { path: '/metrics' },
    ];
    for (const request of requests) {
      const response = await askAs(`attacker.example:${broker.port}`, broker.port, request);
      assertProblem(response, 403, 'host_not_allowed');
      assert.ok(!response.text.includes('secret'));
    }
    assert.equal((await stateOf(broker.port, stream)).head, 1);
  });

  for (const host of [
    'app.example.attacker.example',
    '127.0.0.1.attacker.example',
    'attacker.example.',
    'localhost.attacker.example',
    '127.0.0.1@attacker.example',
    'attacker.example:80:80',
    '[::1].attacker.example',
    '[attacker.example]',
  ]) {
    it(`9.2 ${host} is none of its names`, async () => {
      assertProblem(await askAs(host, broker.port, { path: '/v1/streams' }), 403, 'host_not_allowed');
    });
  }

  for (const host of [
    'localhost',
    'localhost:8080',
    'LOCALHOST.',
    'tool.localhost:1',
    '127.0.0.1:8080',
    '192.0.2.1',
    '[::1]:8080',
    'gapless:8080',
    'app.example',
    'APP.example.:8443',
    'other.example:1',
  ]) {
    it(`9.2 ${host} is one of its names`, async () => {
      assert.equal((await askAs(host, broker.port, { path: '/v1/streams' })).status, 200);
    });
  }

  it('9.2 whether it is alive and ready is told to everybody', async () => {
    for (const path of ['/healthz', '/readyz']) {
      assert.equal((await askAs('anything.example', broker.port, { path })).status, 200);
    }
  });
});

describe('9.2 a broker that strangers are kept from', () => {
  const files = new Files();

  describe('by its network', () => {
    const broker = useBroker('--insecure');

    it('9.2 has any name', async () => {
      assert.equal((await askAs('a.b.example', broker.port, { path: '/v1/streams' })).status, 200);
    });
  });

  describe('by keys', async () => {
    const issuer = await Issuer.create('HS256');
    const broker = useBroker('--jwt-keys-file', files.write('keys.json', keySetOf(issuer)));

    it('9.2 has any name', async () => {
      const refused = await askAs('a.b.example', broker.port, { path: '/v1/streams' });
      assertProblem(refused, 401, 'unauthorized');
    });
  });
});

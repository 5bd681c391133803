import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asMallory, asOperator, mallory, useAttackedBroker } from '../support/attacked-broker.js';
import { assertProblem, publishRequest } from '../support/gapless-client.js';
import { exchangeRaw, type HttpRequest, request } from '../support/http.js';
import { LiveSocket } from '../support/websocket-client.js';

const ALLOWED = 'https://app.example';

describe('attacks on another stream, with a key for `own` and `own-*`', () => {
  const broker = useAttackedBroker();
  const ROWS: readonly (readonly [attack: string, path: string, got: number | null])[] = [
    ['its name', '/v1/streams/other', 403],
    ['its state', '/v1/streams/other/state', 403],
    ['a name in other letters', '/v1/streams/OWN', 403],
    ['a name that the pattern’s letters begin, without its dash', '/v1/streams/owner', 403],
    ['a pattern for a name', '/v1/streams/own*', 400],
    ['beside one that is allowed', '/v1/streams?stream=own&stream=other', 403],
    ['the list of all', '/v1/streams', 403],
    ['..', '/v1/streams/own/../other', 404],
    ['%2e%2e', '/v1/streams/%2e%2e/other', 404],
    ['an encoded slash', '/v1/streams/own%2f..%2fother', 400],
    ['an encoded letter', '/v1/streams/%6fther', 400],
    ['an encoded NUL', '/v1/streams/own%00', 400],
    ['NUL', '/v1/streams/own\0', 505],
    ['an encoded line break', '/v1/streams/own%0d%0aX-Injected:%201', 400],
    ['two slashes', '/v1/streams//other', 404],
    ['two slashes before it', '//v1/streams/other', 404],
    ['a slash behind it', '/v1/streams/other/', 404],
    ['a backslash', '/v1/streams/own\\other', 400],
    ['a parameter of the path', '/v1/streams/own;other', 400],
    ['an address for a path', 'http://127.0.0.1/v1/streams/other', 505],
  ];
  for (const [attack, path, got] of ROWS) {
    it(`${attack}: ${got ?? 'closed'}`, async () => {
      const accept = path.includes('?stream=') ? 'text/event-stream' : 'application/json';
      const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\nAuthorization: Bearer ${mallory.key}\r\n\r\n`;
      const response = await exchangeRaw(broker.port, head);
      assert.equal(response?.status ?? null, got, response?.text);
      assert.ok(!response?.text.includes('secret') && response?.header('x-injected') === undefined);
    });
  }

  it('publishing, closing, creating, deleting it: 403, and nothing has changed', async () => {
    const path = '/v1/streams/other';
    const attempts: HttpRequest[] = [
      publishRequest('other', 'x'),
      { method: 'POST', path: `${path}/close` },
      { method: 'POST', path: `${path}/ack`, body: '{"subscriber":"a","cursor":"aaaaaaaaaa.1"}' },
      { method: 'DELETE', path: `${path}/subscribers/a` },
      { method: 'PUT', path, body: '{}' },
      { method: 'DELETE', path },
      { path: '/metrics' },
    ];
    for (const attempt of attempts) {
      const headers = { ...attempt.headers, ...asMallory };
      assertProblem(await request(broker.port, { ...attempt, headers }), 403, 'forbidden');
    }
    const state = await request(broker.port, { path: `${path}/state`, headers: asOperator });
    assert.deepEqual([state.json().head, state.json().closed], [1, false]);
  });
});

describe('attacks from a page of another origin', () => {
  const broker = useAttackedBroker('--cors-origins', ALLOWED);
  const FOREIGN = 'https://evil.example';

  it('reading with a stolen session: the answer is not given to the page', async () => {
    for (const origin of [FOREIGN, 'null', `${ALLOWED}.evil.example`, ALLOWED.replace('https', 'http')]) {
      const headers = { Origin: origin, ...asMallory };
      const response = await request(broker.port, { path: '/v1/streams/own', headers });
      assert.equal(response.header('access-control-allow-origin'), undefined, origin);
      assert.equal(response.header('access-control-allow-credentials'), undefined, origin);
    }
  });

  it('a preflight for DELETE: granted nothing', async () => {
    const headers = { Origin: FOREIGN, 'Access-Control-Request-Method': 'DELETE' };
    const response = await request(broker.port, { method: 'OPTIONS', path: '/v1/streams/own', headers });
    assert.equal(response.header('access-control-allow-methods'), undefined);
  });

  it('a WebSocket, for which browsers ask nobody: 403', async () => {
    const socket = LiveSocket.connect(broker.port, 'own', { headers: { ...asMallory, Origin: FOREIGN } });
    assert.equal((await socket.untilRefused()).status, 403);
  });
});

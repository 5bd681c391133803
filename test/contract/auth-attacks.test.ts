import assert from 'node:assert/strict';
import { createHmac, createPublicKey, randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { assertProblem, publishRequest } from '../support/gapless-client.js';
import { exchangeRaw, HttpConnection, request } from '../support/http.js';
import { apiKey, bearer, Files, forgeToken, Issuer, keySetOf, nowSeconds } from '../support/tokens.js';

const files = new Files();
const [secret, rsa, ec, stranger] = (await Promise.all(
  (['HS256', 'RS256', 'ES256', 'RS256'] as const).map((algorithm) => Issuer.create(algorithm)),
)) as [Issuer, Issuer, Issuer, Issuer];
const own = apiKey('own', { subscribe: ['own'], publish: ['own'] });

const CLAIMS = {
  sub: 'mallory',
  exp: nowSeconds() + 3600,
  gapless: { publish: ['*'], subscribe: ['*'], admin: true },
};

/** Tampers with one part of a token that was made with a good key. */
function changed(token: string, part: 0 | 1 | 2, change: (text: string) => string): string {
  const parts = token.split('.');
  parts[part] = change(parts[part] ?? '');
  return parts.join('.');
}

function hmacToken(header: object, key: string | Uint8Array): string {
  const unsigned = forgeToken(header, CLAIMS).slice(0, -1);
  return `${unsigned}.${createHmac('sha256', key).update(unsigned).digest('base64url')}`;
}

describe('9.1 attacks on tokens', () => {
  const broker = useBroker(
    ...['--jwt-keys-file', files.write('keys.json', keySetOf(secret, rsa, ec))],
    ...['--api-keys-file', files.write('api-keys.json', JSON.stringify({ apiKeys: [own.entry] }))],
    ...['--jwt-audience', 'gapless'],
  );
  const good = { ...CLAIMS, aud: 'gapless' };

  async function reasonOf(token: string): Promise<unknown> {
    const response = await request(broker.port, { path: '/v1/streams', headers: bearer(token) });
    return assertProblem(response, 401, 'unauthorized').reason;
  }

  it('9.1 a good token is let in, so that the refusals below mean something', async () => {
    for (const issuer of [secret, rsa, ec]) {
      const headers = bearer(await issuer.sign(good));
      assert.equal((await request(broker.port, { path: '/v1/streams', headers })).status, 200);
    }
  });

  it('9.1 forged: signed with the key of a stranger who names ours', async () => {
    assert.equal(await reasonOf(await stranger.sign(good, { kid: rsa.keyId })), 'signature');
    assert.equal(await reasonOf(await stranger.sign(good)), 'unknown_key');
  });

  it('9.1 forged: claims or signature changed after signing, or cut off', async () => {
    for (const issuer of [secret, rsa, ec]) {
      const token = await issuer.sign({ ...good, gapless: {} });
      const payload = Buffer.from(JSON.stringify(good)).toString('base64url');
      assert.equal(await reasonOf(changed(token, 1, () => payload)), 'signature');
      assert.equal(
        await reasonOf(changed(token, 2, (text) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1))),
        'signature',
      );
      assert.equal(await reasonOf(changed(token, 2, () => '')), 'signature');
    }
  });

  it('9.1 alg none, in every spelling, with and without a signature', async () => {
    for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
      for (const signature of ['', 'AAAA']) {
        assert.equal(await reasonOf(forgeToken({ alg, kid: rsa.keyId }, good, signature)), 'unknown_key');
      }
    }
  });

  it('9.1 key confusion: the public key as the secret of an HMAC', async () => {
    const publicKey = createPublicKey({ key: rsa.jwk as never, format: 'jwk' });
    const spellings = [
      publicKey.export({ type: 'spki', format: 'pem' }),
      publicKey.export({ type: 'spki', format: 'der' }),
      JSON.stringify(rsa.jwk),
      String(rsa.jwk.n),
    ];
    for (const key of spellings) {
      assert.equal(await reasonOf(hmacToken({ alg: 'HS256', kid: rsa.keyId }, key)), 'unknown_key');
      assert.equal(await reasonOf(hmacToken({ alg: 'HS256' }, key)), 'signature');
      assert.equal(await reasonOf(hmacToken({ alg: 'RS256', kid: rsa.keyId }, key)), 'signature');
    }
  });

  it('9.1 key confusion: an algorithm that the key does not have', async () => {
    for (const alg of ['HS384', 'HS512', 'RS512', 'PS256', 'ES384']) {
      assert.equal(
        await reasonOf(forgeToken({ alg, kid: rsa.keyId }, good, randomBytes(256))),
        'unknown_key',
      );
    }
    assert.equal(
      await reasonOf(forgeToken({ alg: 'ES256', kid: rsa.keyId }, good, randomBytes(64))),
      'unknown_key',
    );
  });

  it('9.1 a key that the token brings along, or names by address, is not looked at', async () => {
    const brought = {
      jwk: stranger.jwk,
      jku: 'http://127.0.0.1:1/',
      x5u: 'http://127.0.0.1:1/',
      kid: rsa.keyId,
    };
    assert.equal(await reasonOf(await stranger.sign(good, brought)), 'signature');
  });

  it('9.1 a critical header that nobody understands is refused', async () => {
    const header = { alg: 'HS256', kid: secret.keyId, crit: ['exp2'], exp2: 1 };
    const key = Buffer.from(String(secret.jwk.k), 'base64url');
    assert.equal(await reasonOf(hmacToken(header, key)), 'malformed');
    assert.equal(await reasonOf(forgeToken(header, good, 'AAAA')), 'signature');
  });

  it('9.1 expired, not yet valid, without an end, for somebody else', async () => {
    assert.equal(await reasonOf(await rsa.sign({ ...good, exp: nowSeconds() - 60 })), 'expired');
    assert.equal(await reasonOf(await rsa.sign({ ...good, nbf: nowSeconds() + 60 })), 'not_yet_valid');
    assert.equal(await reasonOf(await rsa.sign({ ...good, exp: null })), 'claims');
    assert.equal(await reasonOf(await rsa.sign({ ...good, aud: 'other' })), 'audience');
  });

  it('9.1 what is no token at all', async () => {
    const texts = [
      'x',
      '.',
      '..',
      '...',
      'a.b',
      'a.b.c.d',
      '%00',
      '{}',
      'e30.e30.',
      `${'a'.repeat(3000)}`,
      'gpl_',
      'null',
    ];
    for (const text of texts) await reasonOf(text);
    for (const header of ['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer ', 'bearer', own.key, `Token ${own.key}`]) {
      const response = await request(broker.port, {
        path: '/v1/streams',
        headers: { Authorization: header },
      });
      assertProblem(response, 401, 'unauthorized');
    }
  });

  it('9.1 a token of more than 8 KiB is refused unread, however well it is signed', async () => {
    const padded = await rsa.sign({ ...good, sub: 'x'.repeat(8192) });
    const response = await exchangeRaw(
      broker.port,
      `GET /v1/streams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${padded}\r\n\r\n`,
    );
    assert.ok(response === undefined || [401, 431].includes(response.status), response?.text);
  });

  it('9.1 another stream by tricks with the path', async () => {
    await request(broker.port, { ...publishRequest('own', 'mine'), headers: bearer(own.key) });
    const paths = [
      '/v1/streams/other',
      '/v1/streams/own/../other',
      '/v1/streams/../streams/other',
      '/v1/streams/own%2f..%2fother',
      '/v1/streams/%6fwn',
      '/v1/streams/own%00',
      '/v1/streams/own;other',
      '/v1/streams//other',
      '/v1//streams/other',
      '/v1/streams/own/',
      '/v1/streams/OWN',
      '/v1/streams/own%3Fx',
      '/V1/streams/own',
      'http://127.0.0.1/v1/streams/other',
      '/v1/streams/own\\other',
    ];
    for (const path of paths) {
      const connection = await HttpConnection.open(broker.port);
      connection.send(
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nAuthorization: Bearer ${own.key}\r\n\r\n`,
      );
      const response = await connection.nextResponse(path);
      assert.ok(response.status >= 400, `${path}: ${response.status} ${response.text}`);
      connection.destroy();
    }
  });

  it('9.1 two credentials in one request do not add up', async () => {
    const reader = await rsa.sign({ ...good, gapless: { subscribe: ['other'] } });
    for (const [first, second] of [
      [own.key, reader],
      [reader, own.key],
    ]) {
      const bytes =
        `POST /v1/streams/other HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${first}\r\n` +
        `Authorization: Bearer ${second}\r\nContent-Length: 1\r\n\r\nx`;
      const response = await exchangeRaw(broker.port, bytes);
      assert.ok(
        response === undefined ||
          response.status === 403 ||
          response.status === 400 ||
          response.status === 401,
      );
    }
  });

  it('9.1 a refused publish does not have its body read, and changes nothing', async () => {
    const connection = await HttpConnection.open(broker.port);
    connection.send(
      `POST /v1/streams/own HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await stranger.sign(good)}\r\n` +
        'Content-Length: 8000000\r\n\r\nbegin',
    );
    assertProblem(await connection.nextResponse(), 401, 'unauthorized');
    await connection.closed;
    const state = await request(broker.port, { path: '/v1/streams/own/state', headers: bearer(own.key) });
    assert.equal(state.json().head, 1);
  });

  it('9.1 neither tokens nor keys are in the log, whatever was tried', async () => {
    const log = JSON.stringify(broker.process.log);
    for (const word of [own.key, 'Bearer', 'eyJ']) assert.ok(!log.includes(word), word);
  });
});

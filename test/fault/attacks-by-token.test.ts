import assert from 'node:assert/strict';
import { createHmac, createPublicKey } from 'node:crypto';
import { describe, it } from 'node:test';
import { mallory, useAttackedBroker } from '../support/attacked-broker.js';
import { range } from '../support/cursor.js';
import { assertProblem } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { bearer, Files, forgeToken, Issuer, keySetOf, nowSeconds } from '../support/tokens.js';
import { LiveSocket } from '../support/websocket-client.js';

// What an attacker tries, and what it gets: the name of a test is both.

const files = new Files();
const [rsa, ec, secret, stranger] = (await Promise.all(
  (['RS256', 'ES256', 'HS256', 'RS256'] as const).map((algorithm) => Issuer.create(algorithm)),
)) as [Issuer, Issuer, Issuer, Issuer];

describe('attacks with tokens', () => {
  const broker = useAttackedBroker(
    ...['--jwt-keys-file', files.write('keys.json', keySetOf(rsa, ec, secret)), '--jwt-audience', 'gapless'],
    '--token-in-query',
  );
  const good = {
    sub: 'mallory',
    aud: 'gapless',
    exp: nowSeconds() + 3600,
    gapless: { subscribe: ['*'], admin: true },
  };
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const hmac = (header: object, key: string | Buffer): string => {
    const unsigned = `${part(header)}.${part(good)}`;
    return `${unsigned}.${createHmac('sha256', key).update(unsigned).digest('base64url')}`;
  };
  const publicKey = createPublicKey({ key: rsa.jwk as never, format: 'jwk' });
  const pem = publicKey.export({ type: 'spki', format: 'pem' });

  const ROWS: readonly (readonly [attack: string, token: () => string | Promise<string>, reason: string])[] =
    [
      [
        'forged: a stranger’s key under our key’s name',
        () => stranger.sign(good, { kid: rsa.keyId }),
        'signature',
      ],
      [
        'forged: claims changed after signing',
        async () => (await ec.sign({ ...good, gapless: {} })).replace(/\.[^.]+\./, `.${part(good)}.`),
        'signature',
      ],
      [
        'forged: the signature cut off',
        async () => (await rsa.sign(good)).replace(/[^.]+$/, ''),
        'signature',
      ],
      ['expired', () => rsa.sign({ ...good, exp: nowSeconds() - 60 }), 'expired'],
      ['without an end', () => rsa.sign({ ...good, exp: null }), 'claims'],
      ['not yet valid', () => rsa.sign({ ...good, nbf: nowSeconds() + 60 }), 'not_yet_valid'],
      ['for another audience', () => rsa.sign({ ...good, aud: 'elsewhere' }), 'audience'],
      ['for an audience that begins like ours', () => rsa.sign({ ...good, aud: 'gapless2' }), 'audience'],
      ['alg none', () => forgeToken({ alg: 'none' }, good), 'unknown_key'],
      [
        'alg nOnE under our key’s name',
        () => forgeToken({ alg: 'nOnE', kid: rsa.keyId }, good),
        'unknown_key',
      ],
      [
        'key confusion: the public key as an HMAC secret',
        () => hmac({ alg: 'HS256', kid: rsa.keyId }, pem),
        'unknown_key',
      ],
      ['key confusion: the same without a kid', () => hmac({ alg: 'HS256' }, pem), 'signature'],
      [
        'key confusion: an HMAC that says RS256',
        () => hmac({ alg: 'RS256', kid: rsa.keyId }, pem),
        'signature',
      ],
      ['kid: a path', () => rsa.sign(good, { kid: '../../../../dev/null' }), 'unknown_key'],
      ['kid: a query', () => rsa.sign(good, { kid: "' OR '1'='1" }), 'unknown_key'],
      ['kid: a word of the language', () => rsa.sign(good, { kid: '__proto__' }), 'unknown_key'],
      ['kid: no text', () => forgeToken({ alg: 'RS256', kid: { toString: 1 } }, good, 'AAAA'), 'malformed'],
      [
        'a key that the token brings along',
        () => stranger.sign(good, { jwk: stranger.jwk, kid: rsa.keyId }),
        'signature',
      ],
      ['rights of another shape', () => rsa.sign({ ...good, gapless: { subscribe: '*' } }), 'claims'],
      [
        'more patterns than a claim may have',
        () => rsa.sign({ ...good, gapless: { subscribe: range(1, 101).map(String) } }),
        'claims',
      ],
      ['more than 8 KiB of it', () => `${'a'.repeat(8193)}.a.a`, 'malformed'],
    ];
  for (const [attack, token, reason] of ROWS) {
    it(`${attack}: 401, ${reason}`, async () => {
      const response = await request(broker.port, {
        path: '/v1/streams/other',
        headers: bearer(await token()),
      });
      assert.equal(assertProblem(response, 401, 'unauthorized').reason, reason);
    });
  }

  it('a token in the query beside a bad header: 401, for the header wins', async () => {
    const path = `/v1/streams/own?access_token=${mallory.key}`;
    assertProblem(await request(broker.port, { path, headers: bearer('a.b.c') }), 401, 'unauthorized');
  });

  it('a token that expires under a WebSocket: it is closed with 4401', async () => {
    // Within the tolerance for clocks that differ, so that the end is near.
    const token = await rsa.sign({ ...good, exp: nowSeconds() - 1 });
    const socket = await LiveSocket.open(broker.port, 'other', { headers: bearer(token) });
    assert.equal(await socket.untilClosed(), 4401);
    assert.deepEqual(
      [socket.ofKind('error')[0]?.code, socket.ofKind('error')[0]?.reason],
      ['unauthorized', 'expired'],
    );
    const again = LiveSocket.connect(broker.port, 'other', { headers: bearer(token) });
    assert.equal(await again.untilClosed(), 4401);
  });
});

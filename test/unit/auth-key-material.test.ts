import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair } from 'jose';
import { readApiKeys, readFetchedKeySet, readKeySet } from '#gapless/auth/key-material.js';
import { type Algorithm, apiKey, Issuer, keySetOf } from '../support/tokens.js';

const ALGORITHMS: readonly Algorithm[] = ['HS256', 'RS256', 'ES256', 'EdDSA'];
const issuers = await Promise.all(
  ALGORITHMS.map((algorithm) => Issuer.create(algorithm, `key-${algorithm}`)),
);
const HASH = 'a'.repeat(64);

function setOf(jwk: object): string {
  return JSON.stringify({ keys: [jwk] });
}

test('9.1 a key set has one key for each entry, with its algorithm and id', () => {
  const keys = readKeySet(keySetOf(...issuers));
  assert.deepEqual(
    keys.map(({ algorithm, id }) => [algorithm, id]),
    ALGORITHMS.map((algorithm) => [algorithm, `key-${algorithm}`]),
  );
});

test('9.1 a key that is not fit for its algorithm is refused, with the place and the reason', async () => {
  const [secret, rsa, ec, ed] = issuers.map(({ jwk }) => jwk);
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const wrong: [object, RegExp][] = [
    [{ ...secret, alg: undefined }, /keys\[0\]\.alg: expected one of/],
    [{ ...secret, alg: 'none' }, /alg/],
    [{ ...secret, alg: 'HS512' }, /alg/],
    [{ ...rsa, alg: 'HS256' }, /expected kty oct/],
    [{ ...secret, alg: 'RS256' }, /expected kty RSA/],
    [{ ...ec, crv: 'P-384' }, /crv P-256/],
    [{ ...ed, crv: 'X25519' }, /crv Ed25519/],
    [{ ...secret, k: Buffer.alloc(31).toString('base64url') }, /k of 32 bytes/],
    [{ ...rsa, n: Buffer.alloc(128, 1).toString('base64url') }, /n of 2048 bits/],
    [{ ...(await exportJWK(privateKey)), alg: 'ES256' }, /private key/],
  ];
  for (const [jwk, message] of wrong) assert.throws(() => readKeySet(setOf(jwk)), message);
  assert.throws(() => readKeySet('secret text'), /^Error: not JSON$/);
  assert.throws(() => readKeySet('[]'), /expected a JSON object/);
  assert.throws(() => readKeySet('{}'), /keys: expected a list/);
  assert.throws(() => readKeySet(JSON.stringify({ keys: Array(33).fill(secret) })), /at most 32/);
});

test('9.1 of a fetched set, what is no public signature key of ours is left out', () => {
  const [secret, rsa, ec] = issuers.map(({ jwk }) => jwk);
  const others = [
    secret,
    { ...ec, use: 'enc' },
    { ...ec, crv: 'P-521' },
    { ...rsa, alg: 'RS512' },
    { ...rsa, alg: 'HS256' },
    { kty: 'OKP', crv: 'X25519', x: 'aaaa' },
    'text',
    null,
  ];
  const keys = readFetchedKeySet(
    JSON.stringify({ keys: [...others, rsa, { ...ec, alg: undefined, use: 'sig' }] }),
  );
  assert.deepEqual(
    keys.map(({ algorithm }) => algorithm),
    ['RS256', 'ES256'],
  );
});

test('9.1 static keys are read with their rights, and not with what is misspelled or doubled', () => {
  const { entry } = apiKey('ci', { publish: ['jobs-*'] });
  const [key] = readApiKeys(JSON.stringify({ apiKeys: [entry] }));
  assert.deepEqual(key?.grant, { publish: ['jobs-*'], subscribe: [], admin: false, metrics: false });
  const wrong: [object[], RegExp][] = [
    [[{ sha256: HASH }], /apiKeys\[0\]\.id/],
    [[{ id: 'a b', sha256: HASH }], /apiKeys\[0\]\.id/],
    [[{ id: 'a', sha256: 'a'.repeat(63) }], /sha256/],
    [[{ id: 'a', sha256: HASH.toUpperCase() }], /sha256/],
    [[{ id: 'a', sha256: HASH, publish: 'b' }], /lists of patterns/],
    [[{ id: 'a', sha256: HASH, admin: 'yes' }], /true or false/],
    [[entry, entry], /id is there twice/],
    [[entry, { ...entry, id: 'other' }], /sha256 is there twice/],
  ];
  for (const [apiKeys, message] of wrong)
    assert.throws(() => readApiKeys(JSON.stringify({ apiKeys })), message);
});

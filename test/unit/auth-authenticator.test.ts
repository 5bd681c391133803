import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Authenticated, Authenticator } from '#gapless/auth/authenticator.js';
import { type KeyMaterial, readApiKeys, readKeySet } from '#gapless/auth/key-material.js';
import { apiKey, type Issuer, Issuer as Issuers, keySetOf, nowSeconds } from '../support/tokens.js';

const MINUTE_MS = 60_000;
const issuer = await Issuers.create('HS256');

function material(issuers: readonly Issuer[], apiKeys: object[] = [], isComplete = true): KeyMaterial {
  return {
    tokenKeys: issuers.length === 0 ? [] : readKeySet(keySetOf(...issuers)),
    apiKeys: readApiKeys(JSON.stringify({ apiKeys })),
    isComplete,
  };
}

/** An authenticator whose clock stands still until it is moved, and who counts how often it asks for keys. */
function stage(
  keys: KeyMaterial,
  refresh: (authenticator: Authenticator) => Promise<void> = async () => undefined,
) {
  const state = { nowMs: Date.now(), refreshes: 0 };
  const authenticator: Authenticator = new Authenticator({
    keys,
    rules: { issuer: '', audience: '' },
    now: () => state.nowMs,
    refresh: () => {
      state.refreshes++;
      return refresh(authenticator);
    },
  });
  return { authenticator, state };
}

function faultOf(result: Authenticated | null): string | null {
  return result?.outcome === 'refused' ? result.fault : null;
}

function principalIdOf(result: Authenticated | null): string | null {
  return result?.outcome === 'accepted' ? result.principal.id : null;
}

test('9.1 who was verified is known for a minute, and not longer than the token', async () => {
  const { authenticator, state } = stage(material([issuer]));
  const long = await issuer.sign({ sub: 'long' });
  const short = await issuer.sign({ sub: 'short', exp: nowSeconds() + 10 });
  assert.equal(authenticator.known(long), null);
  assert.equal((await authenticator.authenticate(long)).outcome, 'accepted');
  await authenticator.authenticate(short);
  state.nowMs += 16_000;
  assert.equal(principalIdOf(authenticator.known(long)), 'long');
  assert.equal(authenticator.known(short), null);
  state.nowMs += MINUTE_MS;
  assert.equal(authenticator.known(long), null);
});

test('9.1 no more than the bound of what is accepted is remembered', async () => {
  const keys = Array.from({ length: 4100 }, (_, index) => apiKey(`key-${index}`, {}));
  const { authenticator } = stage(
    material(
      [],
      keys.map(({ entry }) => entry),
    ),
  );
  for (const { key } of keys) await authenticator.authenticate(key);
  const known = keys.filter(({ key }) => authenticator.known(key) !== null);
  assert.equal(known.length, 4096);
  assert.equal(authenticator.known(keys[0]?.key ?? ''), null, 'the oldest is forgotten');
});

test('9.1 what is wrong with a token for good is known for a minute', async () => {
  const { authenticator, state } = stage(material([issuer]));
  const expired = await issuer.sign({ exp: nowSeconds() - 60 });
  const forged = `${(await issuer.sign({})).split('.').slice(0, 2).join('.')}.${'A'.repeat(43)}`;
  for (const token of [expired, forged, 'malformed']) await authenticator.authenticate(token);
  const known = (): (string | null)[] =>
    [expired, forged, 'malformed'].map((token) => faultOf(authenticator.known(token)));
  assert.deepEqual(known(), ['expired', 'signature', 'malformed']);
  state.nowMs += MINUTE_MS;
  assert.deepEqual(known(), [null, null, null]);
});

test('9.1 what a refused token lacks may come: a time, or a key; that is looked at each time', async () => {
  const stranger = await Issuers.create('ES256');
  const { authenticator } = stage(material([issuer]));
  const early = await issuer.sign({ nbf: nowSeconds() + 60 });
  for (const token of [early, await stranger.sign({}), 'gpl_nobody']) {
    assert.equal((await authenticator.authenticate(token)).outcome, 'refused');
    assert.equal(authenticator.known(token), null);
  }
});

test('9.1 however many are refused, who was let in stays known', async () => {
  const { authenticator } = stage(material([issuer]));
  const good = await issuer.sign({ sub: 'good' });
  await authenticator.authenticate(good);
  const bad = Array.from({ length: 5000 }, (_, index) => `bad-${index}`);
  for (const token of bad) await authenticator.authenticate(token);
  assert.equal(principalIdOf(authenticator.known(good)), 'good');
  assert.equal(bad.filter((token) => authenticator.known(token) !== null).length, 1024);
});

test('9.1 a credential with the end of another one is not taken for it', async () => {
  const { authenticator } = stage(material([issuer]));
  const good = await issuer.sign({ sub: 'good' });
  await authenticator.authenticate(good);
  const [header, , signature] = good.split('.');
  const forged = `${header}.${Buffer.from(JSON.stringify({ sub: 'other' })).toString('base64url')}.${signature}`;
  assert.equal(authenticator.known(forged), null);
  assert.equal(faultOf(await authenticator.authenticate(forged)), 'signature');
  assert.equal(faultOf(authenticator.known(forged)), 'signature');
  assert.equal(principalIdOf(authenticator.known(good)), 'good');
});

test('9.1 other keys make all forgotten that the old ones vouched for', async () => {
  const other = await Issuers.create('HS256');
  const { key, entry } = apiKey('ci', { publish: ['a'] });
  const { authenticator } = stage(material([issuer], [entry]));
  const token = await issuer.sign({});
  const refused = await other.sign({}, { kid: issuer.keyId });
  assert.equal(faultOf(await authenticator.authenticate(refused)), 'signature');
  const principals = [await authenticator.authenticate(token), await authenticator.authenticate(key)];
  const names = authenticator.replaceKeys(material([other], [{ ...entry, publish: [] }]));
  assert.equal(authenticator.known(token), null);
  assert.equal(authenticator.known(refused), null);
  assert.equal(faultOf(await authenticator.authenticate(token)), 'unknown_key');
  for (const result of principals) {
    assert.ok(result.outcome === 'accepted');
    assert.ok(!names.has(result.principal.keyName), 'a key with other rights is another key');
  }
});

test('9.1 a key that is not here is asked for once, by all who need it', async () => {
  const late = await Issuers.create('ES256');
  const { authenticator, state } = stage(material([issuer]), async (asking) => {
    asking.replaceKeys(material([issuer, late]));
  });
  const tokens = await Promise.all(['a', 'b', 'c'].map((sub) => late.sign({ sub })));
  const results = await Promise.all(tokens.map((token) => authenticator.authenticate(token)));
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['accepted', 'accepted', 'accepted'],
  );
  assert.equal(state.refreshes, 1);
});

test('9.1 a key that nobody has is unknown, or unavailable while keys are missing', async () => {
  const stranger = await Issuers.create('EdDSA');
  const token = await stranger.sign({});
  assert.equal(faultOf(await stage(material([issuer])).authenticator.authenticate(token)), 'unknown_key');
  const waiting = stage(material([issuer], [], false)).authenticator;
  assert.equal(faultOf(await waiting.authenticate(token)), 'keys_unavailable');
});

test('9.1 the same token sent many times at once is verified once', async () => {
  const { authenticator } = stage(material([issuer]));
  const token = await issuer.sign({});
  const [first, ...others] = Array.from({ length: 50 }, () => authenticator.authenticate(token));
  for (const other of others) assert.equal(other, first);
  assert.equal((await first)?.outcome, 'accepted');
});

test('9.1 subjects that are long and begin alike are not the same', async () => {
  const { authenticator } = stage(material([issuer]));
  const long = `spiffe://domain/${'x'.repeat(150)}/`;
  const tokens = await Promise.all(['a', 'b', 'a'].map((end) => issuer.sign({ sub: long + end })));
  const [a, b, again] = await Promise.all(tokens.map((token) => authenticator.authenticate(token)));
  const ids = [a, b, again].map((result) => principalIdOf(result ?? null));
  assert.deepEqual([ids[0]?.length, ids[0] === ids[1], ids[0] === ids[2]], [128, false, true]);
});

test('9.1 of several shared secrets each is tried when the token names none', async () => {
  const other = await Issuers.create('HS256');
  const { authenticator } = stage(material([issuer, other]));
  for (const signer of [issuer, other]) {
    const token = await signer.sign({ sub: 'either' }, { kid: undefined });
    assert.equal(principalIdOf(await authenticator.authenticate(token)), 'either');
  }
  const stranger = await Issuers.create('HS256');
  const forged = await stranger.sign({}, { kid: undefined });
  assert.equal(faultOf(await authenticator.authenticate(forged)), 'signature');
});

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

function faultOf(result: Authenticated): string | null {
  return result.outcome === 'refused' ? result.fault : null;
}

test('9.1 who was verified is known for a minute, and not longer than the token', async () => {
  const { authenticator, state } = stage(material([issuer]));
  const long = await issuer.sign({ sub: 'long' });
  const short = await issuer.sign({ sub: 'short', exp: nowSeconds() + 10 });
  assert.equal(authenticator.known(long), null);
  assert.equal((await authenticator.authenticate(long)).outcome, 'accepted');
  await authenticator.authenticate(short);
  state.nowMs += 16_000;
  assert.equal(authenticator.known(long)?.id, 'long');
  assert.equal(authenticator.known(short), null);
  state.nowMs += MINUTE_MS;
  assert.equal(authenticator.known(long), null);
});

test('9.1 what is refused is not remembered, nor more than the bound of what is accepted', async () => {
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
  assert.equal(faultOf(await authenticator.authenticate('gpl_nobody')), 'unknown_api_key');
  assert.equal(authenticator.known('gpl_nobody'), null);
});

test('9.1 other keys make all forgotten that the old ones vouched for', async () => {
  const other = await Issuers.create('HS256');
  const { key, entry } = apiKey('ci', { publish: ['a'] });
  const { authenticator } = stage(material([issuer], [entry]));
  const token = await issuer.sign({});
  const principals = [await authenticator.authenticate(token), await authenticator.authenticate(key)];
  const names = authenticator.replaceKeys(material([other], [{ ...entry, publish: [] }]));
  assert.equal(authenticator.known(token), null);
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

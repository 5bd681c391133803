/**
 * The keys that callers are checked against, as plain data that can be handed to other threads: public keys and shared
 * secrets for tokens, as JSON Web Keys (RFC 7517), and hashes of static API keys. Read strictly: a key that is not what
 * it should be must not be found out by a caller who gets in.
 */

import { type Grant, readGrant } from '../core/grant.js';

/** Signature algorithms of tokens (RFC 7518, 8037). Each key has one: a token cannot choose another for it. */
export const ALGORITHMS = ['HS256', 'RS256', 'ES256', 'EdDSA'] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

export interface TokenKey {
  readonly algorithm: Algorithm;
  /** The `kid` of the key; null where it has none. */
  readonly id: string | null;
  readonly jwk: Readonly<Record<string, unknown>>;
}

export interface ApiKey {
  readonly id: string;
  /** Hex SHA-256 of the key. The keys are random and long, so that a plain hash gives nothing away. */
  readonly sha256: string;
  readonly grant: Grant;
}

export interface KeyMaterial {
  readonly tokenKeys: readonly TokenKey[];
  readonly apiKeys: readonly ApiKey[];
  /** False while keys that should be there could not be fetched: then an unknown key may be one of those. */
  readonly isComplete: boolean;
}

/** Keys in one set: with no `kid` in a token, each of its algorithm is tried. */
const TOKEN_KEYS_MAX = 32;
const API_KEYS_MAX = 10_000;
/** RFC 7518, 3.2: a key of the size of the hash, or larger. */
const SECRET_BYTES_MIN = 32;
const RSA_BITS_MIN = 2048;

/** What kind of key each algorithm takes. */
const KEY_TYPES: Readonly<Record<Algorithm, { readonly kty: string; readonly crv?: string }>> = {
  HS256: { kty: 'oct' },
  RS256: { kty: 'RSA' },
  ES256: { kty: 'EC', crv: 'P-256' },
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
};

type Json = Readonly<Record<string, unknown>>;

/**
 * Reads a key set that the operator wrote: `{"keys": [jwk, …]}`, each with its `alg`, shared secrets too.
 * @throws Error that says which key is wrong, and why.
 */
export function readKeySet(text: string): TokenKey[] {
  const keys = arrayIn(parse(text), 'keys', TOKEN_KEYS_MAX);
  return keys.map((entry, index) => {
    const jwk = objectAt(entry, `keys[${index}]`);
    const algorithm = ALGORITHMS.find((known) => known === jwk.alg);
    if (algorithm === undefined)
      throw new Error(`keys[${index}].alg: expected one of ${ALGORITHMS.join(', ')}`);
    const problem = problemOf(jwk, algorithm);
    if (problem !== null) throw new Error(`keys[${index}]: ${problem}`);
    return tokenKey(jwk, algorithm);
  });
}

/**
 * Reads a key set that was fetched: what others publish has keys for other uses in it, which are left out, and a shared
 * secret that everybody can read is none.
 * @throws Error when it is no key set.
 */
export function readFetchedKeySet(text: string): TokenKey[] {
  return arrayIn(parse(text), 'keys', Number.POSITIVE_INFINITY)
    .flatMap((entry) => {
      if (typeof entry !== 'object' || entry === null) return [];
      const jwk = entry as Json;
      const algorithm = ALGORITHMS.find(
        (known) => known !== 'HS256' && (jwk.alg ?? known) === known && isOfType(jwk, known),
      );
      const isForSignatures = jwk.use === undefined || jwk.use === 'sig';
      if (algorithm === undefined || !isForSignatures || problemOf(jwk, algorithm) !== null) return [];
      return [tokenKey(jwk, algorithm)];
    })
    .slice(0, TOKEN_KEYS_MAX);
}

/**
 * Reads the static keys: `{"apiKeys": [{"id", "sha256", "publish", "subscribe", "admin", "metrics"}, …]}`.
 * @throws Error that says which entry is wrong, and why.
 */
export function readApiKeys(text: string): ApiKey[] {
  const entries = arrayIn(parse(text), 'apiKeys', API_KEYS_MAX);
  const keys = entries.map((entry, index) => {
    const { id, sha256, ...claim } = objectAt(entry, `apiKeys[${index}]`);
    if (typeof id !== 'string' || !/^[\x21-\x7e]{1,128}$/.test(id)) {
      throw new Error(`apiKeys[${index}].id: expected 1 to 128 visible ASCII characters`);
    }
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) {
      throw new Error(`apiKeys[${index}].sha256: expected 64 digits of lower-case hex`);
    }
    const grant = readGrant(claim);
    if (grant === null) {
      throw new Error(
        `apiKeys[${index}]: expected publish and subscribe as lists of patterns, admin and metrics as true or false`,
      );
    }
    return { id, sha256, grant };
  });
  for (const property of ['id', 'sha256'] as const) {
    if (new Set(keys.map((key) => key[property])).size < keys.length)
      throw new Error(`apiKeys: ${property} is there twice`);
  }
  return keys;
}

function tokenKey(jwk: Json, algorithm: Algorithm): TokenKey {
  return { algorithm, id: typeof jwk.kid === 'string' ? jwk.kid : null, jwk };
}

function isOfType(jwk: Json, algorithm: Algorithm): boolean {
  const { kty, crv } = KEY_TYPES[algorithm];
  return jwk.kty === kty && (crv === undefined || jwk.crv === crv);
}

function problemOf(jwk: Json, algorithm: Algorithm): string | null {
  const { kty, crv } = KEY_TYPES[algorithm];
  if (!isOfType(jwk, algorithm))
    return `expected kty ${kty}${crv === undefined ? '' : ` and crv ${crv}`} for ${algorithm}`;
  if (jwk.d !== undefined)
    return 'a private key, expected the public one: who checks tokens must not be able to make them';
  if (algorithm === 'HS256' && bytesOf(jwk.k) < SECRET_BYTES_MIN)
    return `expected k of ${SECRET_BYTES_MIN} bytes or more`;
  if (algorithm === 'RS256' && bytesOf(jwk.n) * 8 < RSA_BITS_MIN)
    return `expected n of ${RSA_BITS_MIN} bits or more`;
  return null;
}

function bytesOf(base64url: unknown): number {
  return typeof base64url === 'string' ? Buffer.from(base64url, 'base64url').length : 0;
}

function parse(text: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own words would quote the text, and with it perhaps a secret.
    throw new Error('not JSON');
  }
  return objectAt(value, 'the file');
}

function objectAt(value: unknown, where: string): Json {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
  throw new Error(`${where}: expected a JSON object`);
}

function arrayIn(object: Json, member: string, lengthMax: number): readonly unknown[] {
  const value = object[member];
  if (!Array.isArray(value)) throw new Error(`${member}: expected a list`);
  if (value.length > lengthMax)
    throw new Error(`${member}: ${value.length} entries, expected at most ${lengthMax}`);
  return value;
}

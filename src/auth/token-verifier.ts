/**
 * Checks JSON Web Tokens (RFC 7519, 8725) against the keys at hand. The algorithm is the key's, never the token's word:
 * a public key cannot be passed off as a shared secret, and `none` has no key.
 *
 * Cold path: a signature takes 0.1 to 0.4 ms, on a thread of Node's pool. `authenticator.ts` remembers the results. What
 * anybody can forge by the thousand is refused before that: a hash over it says that no shared secret made it.
 */

import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { CryptoKey, JWTPayload } from 'jose';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import * as errors from 'jose/errors';
import { jwtVerify } from 'jose/jwt/verify';
import { importJWK } from 'jose/key/import';
import { readGrant } from '../core/grant.js';
import type { Algorithm, TokenKey } from './key-material.js';
import type { Principal } from './principal.js';

/** Clocks of two machines differ; so much later a token still counts. */
const CLOCK_TOLERANCE_SECONDS = 5;

const SUBJECT_LENGTH_MAX = 128;

/** Why a token is refused. Stable words: clients are told them. */
export type TokenFault =
  | 'malformed'
  | 'unknown_key'
  | 'signature'
  | 'expired'
  | 'not_yet_valid'
  | 'issuer'
  | 'audience'
  | 'claims';

export type Verified =
  | { readonly outcome: 'accepted'; readonly principal: Principal }
  | { readonly outcome: 'refused'; readonly fault: TokenFault };

export interface TokenRules {
  /** The `iss` that is expected; empty: any. */
  readonly issuer: string;
  /** The `aud` that is expected; empty: any. */
  readonly audience: string;
}

interface ImportedKey {
  readonly algorithm: Algorithm;
  readonly id: string | null;
  readonly name: string;
  readonly key: Promise<CryptoKey>;
  /** Null where the key is a public one. */
  readonly secret: KeyObject | null;
}

export class TokenVerifier {
  readonly #keys: readonly ImportedKey[];
  readonly #rules: TokenRules;

  constructor(keys: readonly TokenKey[], rules: TokenRules) {
    this.#rules = rules;
    this.#keys = keys.map(({ algorithm, id, jwk }) => {
      const key = importKey(jwk, algorithm);
      // A key that cannot be used fails each token that needs it, not the thread.
      key.catch(() => undefined);
      return { algorithm, id, name: keyName(jwk), key, secret: secretOf(jwk) };
    });
  }

  get keyNames(): readonly string[] {
    return this.#keys.map(({ name }) => name);
  }

  async verify(token: string): Promise<Verified> {
    const header = headerOf(token);
    if (header === null) return refuse('malformed');
    const candidates = this.#keys.filter(
      (key) =>
        key.algorithm === header.alg &&
        (header.kid === undefined || key.id === null || key.id === header.kid),
    );
    let verified: Verified = refuse('unknown_key');
    for (const candidate of candidates) {
      verified = await this.#verifyWith(token, candidate);
      if (verified.outcome === 'accepted' || verified.fault !== 'signature') break;
    }
    return verified;
  }

  async #verifyWith(token: string, { algorithm, key, name, secret }: ImportedKey): Promise<Verified> {
    if (secret !== null && !isSignedWith(secret, token)) return refuse('signature');
    try {
      const { payload } = await jwtVerify(token, await key, {
        algorithms: [algorithm],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        // One without an end would keep a connection open for ever; static keys are for that.
        requiredClaims: ['exp'],
        ...(this.#rules.issuer === '' ? {} : { issuer: this.#rules.issuer }),
        ...(this.#rules.audience === '' ? {} : { audience: this.#rules.audience }),
      });
      return accept(payload, name);
    } catch (error) {
      return refuse(faultOf(error));
    }
  }
}

/** Once and for all: of a secret, `jose` would make such a key for each token. */
async function importKey(jwk: TokenKey['jwk'], algorithm: Algorithm): Promise<CryptoKey> {
  const key = await importJWK({ ...jwk }, algorithm);
  if (!(key instanceof Uint8Array)) return key;
  const hash = `SHA-${algorithm.slice(-3)}`;
  return crypto.subtle.importKey('raw', new Uint8Array(key), { name: 'HMAC', hash }, false, ['verify']);
}

function secretOf({ kty, k }: TokenKey['jwk']): KeyObject | null {
  return kty === 'oct' && typeof k === 'string' ? createSecretKey(k, 'base64url') : null;
}

/** Whether the last part is HS256 over all before it (RFC 7515, 5.2). */
function isSignedWith(secret: KeyObject, token: string): boolean {
  const dot = token.lastIndexOf('.');
  const expected = createHmac('sha256', secret).update(token.slice(0, dot)).digest();
  const signature = Buffer.from(token.slice(dot + 1), 'base64url');
  return signature.length === expected.length && timingSafeEqual(signature, expected);
}

/** Identifies a key without giving a secret away. */
function keyName(jwk: Readonly<Record<string, unknown>>): string {
  const { kty, crv, k, n, e, x, y } = jwk;
  return `jwk:${createHash('sha256')
    .update(JSON.stringify([kty, crv, k, n, e, x, y]))
    .digest('base64url')}`;
}

function headerOf(token: string): { alg: string; kid: string | undefined } | null {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    if (typeof alg !== 'string' || (kid !== undefined && typeof kid !== 'string')) return null;
    return { alg, kid };
  } catch {
    return null;
  }
}

function accept(payload: JWTPayload, keyName: string): Verified {
  const { sub = '', exp, gapless } = payload;
  const grant = readGrant(gapless);
  if (grant === null || typeof sub !== 'string') return refuse('claims');
  const expiresAtMs = ((exp as number) + CLOCK_TOLERANCE_SECONDS) * 1000;
  return { outcome: 'accepted', principal: { id: idOf(sub), grant, expiresAtMs, keyName } };
}

/** A subject as it is, or of one that is too long the beginning and a hash: those that begin alike are not one. */
function idOf(subject: string): string {
  if (subject.length <= SUBJECT_LENGTH_MAX) return subject;
  const hash = createHash('sha256').update(subject).digest('base64url');
  return `${subject.slice(0, SUBJECT_LENGTH_MAX - hash.length)}${hash}`;
}

function refuse(fault: TokenFault): Verified {
  return { outcome: 'refused', fault };
}

function faultOf(error: unknown): TokenFault {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return 'audience';
    if (error.claim === 'iss') return 'issuer';
    return error.claim === 'nbf' && error.reason === 'check_failed' ? 'not_yet_valid' : 'claims';
  }
  return 'malformed';
}

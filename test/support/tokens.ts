import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

export type Algorithm = 'HS256' | 'RS256' | 'ES256' | 'EdDSA';

export interface Claims {
  sub?: string;
  iss?: string;
  aud?: string;
  nbf?: number;
  /** Unix time, seconds; an hour from now when absent, and left out when null. */
  exp?: number | null;
  gapless?: unknown;
}

/** Somebody who has a key and makes tokens with it. */
export class Issuer {
  private constructor(
    readonly algorithm: Algorithm,
    readonly keyId: string,
    /** What the broker is given. */
    readonly jwk: JWK,
    readonly signingKey: Parameters<SignJWT['sign']>[0],
  ) {}

  static async create(algorithm: Algorithm, keyId = randomBytes(6).toString('hex')): Promise<Issuer> {
    if (algorithm === 'HS256') {
      const secret = randomBytes(32);
      const jwk = { kty: 'oct', k: secret.toString('base64url'), alg: algorithm, kid: keyId };
      return new Issuer(algorithm, keyId, jwk, secret);
    }
    const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), alg: algorithm, kid: keyId };
    return new Issuer(algorithm, keyId, jwk, privateKey);
  }

  sign(claims: Claims = {}, header: Record<string, unknown> = {}): Promise<string> {
    const { exp = nowSeconds() + 3600, ...rest } = claims;
    const payload = exp === null ? rest : { ...rest, exp };
    return new SignJWT(payload)
      .setProtectedHeader({ alg: this.algorithm, kid: this.keyId, ...header })
      .sign(this.signingKey);
  }

  /** A token that grants this. */
  grant(gapless: Record<string, unknown>, claims: Claims = {}): Promise<string> {
    return this.sign({ ...claims, gapless });
  }
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

export function keySetOf(...issuers: readonly Issuer[]): string {
  return JSON.stringify({ keys: issuers.map(({ jwk }) => jwk) });
}

export function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

/** A static key, and its entry in the file that the broker is given. */
export function apiKey(id: string, rights: Record<string, unknown>): { key: string; entry: object } {
  const key = `gpl_${randomBytes(32).toString('base64url')}`;
  return { key, entry: { id, sha256: createHash('sha256').update(key).digest('hex'), ...rights } };
}

/** A folder for files that go when the test file is done. */
export class Files {
  readonly folder = mkdtempSync(join(tmpdir(), 'gapless-keys-'));

  constructor() {
    after(() => rmSync(this.folder, { recursive: true }));
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }
}

/** A token put together by hand, from parts that no library would put together. */
export function forgeToken(header: object, payload: object, signature: Uint8Array | string = ''): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(payload)}.${typeof signature === 'string' ? signature : Buffer.from(signature).toString('base64url')}`;
}

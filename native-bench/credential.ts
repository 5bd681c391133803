import { createHmac, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const LIFE_SECONDS = 24 * 3600;

/** What a broker checks tokens against, and a token that may do everything there. */
export interface Credential {
  /** For `--jwt-keys-file`. */
  readonly keysFile: string;
  readonly token: string;
}

/** A fresh secret for HS256, and a token signed with it (RFC 7515, 7517, 7519). */
export function makeCredential(directory: string, nowMs: number): Credential {
  const secret = randomBytes(32);
  const keysFile = join(directory, 'keys.json');
  const key = { kty: 'oct', alg: 'HS256', kid: 'bench', k: secret.toString('base64url') };
  writeFileSync(keysFile, JSON.stringify({ keys: [key] }), { mode: 0o600 });
  const claims = {
    sub: 'bench',
    exp: Math.floor(nowMs / 1000) + LIFE_SECONDS,
    gapless: { publish: ['*'], subscribe: ['*'], admin: true },
  };
  const signed = `${encode({ alg: 'HS256', kid: 'bench' })}.${encode(claims)}`;
  const signature = createHmac('sha256', secret).update(signed).digest('base64url');
  return { keysFile, token: `${signed}.${signature}` };
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

import { readFileSync } from 'node:fs';
import { importJWK, type JWK, SignJWT } from 'jose';
import { ALGORITHMS } from '../auth/key-material.js';
import type { Problem } from '../config/problem.js';
import { parseTime } from '../config/units.js';
import { readCommandFlags, textOf } from './command-flags.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { printError, printLine, refuse } from './terminal.js';
import { RIGHTS_OPTIONS, readRights } from './token-rights.js';

const OPTIONS = {
  ...RIGHTS_OPTIONS,
  key: { type: 'string' },
  expires: { type: 'string' },
  subject: { type: 'string' },
  issuer: { type: 'string' },
  audience: { type: 'string' },
} as const;

/** `gapless token make`: prints a token. */
export async function makeToken(argv: readonly string[]): Promise<number> {
  const { values, problems } = readCommandFlags(argv, OPTIONS);
  const rights = readRights(values, problems);
  const path = textOf(values, 'key');
  const lifetimeMs = parseTime(textOf(values, 'expires') ?? '');
  if (path === undefined) problems.push({ where: '--key', message: 'expected the file of a private key' });
  if (lifetimeMs === undefined) problems.push({ where: '--expires', message: 'expected a time such as 1h' });
  if (problems.length > 0 || path === undefined || lifetimeMs === undefined || rights === null) {
    return refuse(problems, 'gapless token --help');
  }
  const jwk = readSigningKey(path);
  if ('message' in jwk) {
    printError(`${jwk.where}: ${jwk.message}`);
    return EXIT_FAILED;
  }
  const nowSeconds = Math.floor(Date.now() / 1000);
  const token = new SignJWT({ gapless: { ...rights } })
    .setProtectedHeader({ alg: jwk.alg as string, ...(jwk.kid === undefined ? {} : { kid: jwk.kid }) })
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + Math.ceil(lifetimeMs / 1000));
  const [subject, issuer, audience] = ['subject', 'issuer', 'audience'].map((name) => textOf(values, name));
  if (subject !== undefined) token.setSubject(subject);
  if (issuer !== undefined) token.setIssuer(issuer);
  if (audience !== undefined) token.setAudience(audience);
  printLine(await token.sign(await importJWK(jwk)));
  return EXIT_OK;
}

/** A file of one key, or of a set with one key in it, as `gapless token keys` makes them. */
function readSigningKey(path: string): JWK | Problem {
  try {
    const content = JSON.parse(readFileSync(path, 'utf8')) as JWK & { keys?: JWK[] };
    const jwk = content.keys?.length === 1 ? content.keys[0] : content;
    const canSign = jwk !== undefined && (jwk.d !== undefined || jwk.k !== undefined);
    if (canSign && ALGORITHMS.some((algorithm) => algorithm === jwk.alg)) return jwk;
    return {
      where: path,
      message: `expected one private key or secret, with its alg: ${ALGORITHMS.join(', ')}`,
    };
  } catch (error) {
    return { where: path, message: error instanceof SyntaxError ? 'not JSON' : (error as Error).message };
  }
}

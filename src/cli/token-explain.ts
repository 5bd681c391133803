import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from 'jose';
import { readKeySet } from '../auth/key-material.js';
import { TokenVerifier } from '../auth/token-verifier.js';
import { type Grant, readGrant } from '../core/grant.js';
import { readCommandFlags, textOf } from './command-flags.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { printError, printLine, refuse } from './terminal.js';

const OPTIONS = {
  'jwt-keys-file': { type: 'string' },
  issuer: { type: 'string' },
  audience: { type: 'string' },
} as const;

/** `gapless token explain`. The token comes by standard input: arguments are seen by others, and kept in histories. */
export async function explainToken(argv: readonly string[]): Promise<number> {
  const { values, positionals, problems } = readCommandFlags(argv, OPTIONS);
  if (positionals.length > 0) {
    problems.push({ where: 'arguments', message: 'expected none, the token is read from standard input' });
  }
  if (problems.length > 0) return refuse(problems, 'gapless token --help');
  const token = (await text(process.stdin)).trim();
  const decoded = decode(token);
  if (decoded === null) {
    printError('not a JSON Web Token');
    return EXIT_FAILED;
  }
  const { header, payload } = decoded;
  for (const [what, value] of Object.entries(explain(header, payload)))
    printLine(`${what.padEnd(10)}${value}`);

  const path = textOf(values, 'jwt-keys-file');
  if (path === undefined) {
    printLine('verified  no keys were given');
    return EXIT_OK;
  }
  return verify(token, path, {
    issuer: textOf(values, 'issuer') ?? '',
    audience: textOf(values, 'audience') ?? '',
  });
}

async function verify(
  token: string,
  path: string,
  rules: { issuer: string; audience: string },
): Promise<number> {
  try {
    const verified = await new TokenVerifier(readKeySet(readFileSync(path, 'utf8')), rules).verify(token);
    if (verified.outcome === 'accepted') {
      printLine('verified  yes');
      return EXIT_OK;
    }
    printLine(`verified  no: ${verified.fault}`);
  } catch (error) {
    printError(`${path}: ${(error as Error).message}`);
  }
  return EXIT_FAILED;
}

function decode(token: string): { header: Record<string, unknown>; payload: JWTPayload } | null {
  try {
    return { header: decodeProtectedHeader(token) as Record<string, unknown>, payload: decodeJwt(token) };
  } catch {
    return null;
  }
}

function explain(header: Record<string, unknown>, payload: JWTPayload): Record<string, string> {
  const grant = readGrant(payload.gapless);
  return {
    algorithm: shown(header.alg),
    key: shown(header.kid),
    subject: shown(payload.sub),
    issuer: shown(payload.iss),
    audience: shown(payload.aud),
    expires: typeof payload.exp === 'number' ? timeOf(payload.exp) : 'never, which is not accepted',
    ...(grant === null
      ? { rights: 'the claim gapless does not have the documented shape' }
      : rightsOf(grant)),
  };
}

function rightsOf({ publish, subscribe, admin, metrics }: Grant): Record<string, string> {
  return {
    publish: publish.join(', ') || 'nothing',
    subscribe: subscribe.join(', ') || 'nothing',
    admin: admin ? 'yes' : 'no',
    metrics: metrics || admin ? 'yes' : 'no',
  };
}

/** As JSON: what stands in a token must not reach the terminal as control characters. */
function shown(value: unknown): string {
  if (value === undefined) return '-';
  return JSON.stringify(value).replace(
    /\p{C}/gu,
    (c) => `\\u${(c.codePointAt(0) as number).toString(16).padStart(4, '0')}`,
  );
}

function timeOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString();
}

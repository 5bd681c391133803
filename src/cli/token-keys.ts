import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import { API_KEY_PREFIX } from '../auth/authenticator.js';
import { ALGORITHMS, type Algorithm } from '../auth/key-material.js';
import { readCommandFlags, textOf } from './command-flags.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { printError, printLine, refuse } from './terminal.js';
import { RIGHTS_OPTIONS, readRights } from './token-rights.js';

const SECRET_BYTES = 32;
const PRIVATE_MODE = 0o600;

/** `gapless token keys`: writes what signs, and what checks. */
export async function makeKeys(argv: readonly string[]): Promise<number> {
  const { values, problems } = readCommandFlags(argv, {
    alg: { type: 'string' },
    private: { type: 'string' },
    public: { type: 'string' },
  });
  const [privatePath, publicPath] = [textOf(values, 'private'), textOf(values, 'public')];
  const algorithm = ALGORITHMS.find((known) => known === values.alg);
  if (algorithm === undefined)
    problems.push({ where: '--alg', message: `expected one of ${ALGORITHMS.join(', ')}` });
  if (privatePath === undefined) problems.push({ where: '--private', message: 'expected a file' });
  if (publicPath === undefined) problems.push({ where: '--public', message: 'expected a file' });
  if (algorithm === undefined || privatePath === undefined || publicPath === undefined) {
    return refuse(problems, 'gapless token --help');
  }
  const { signing, checking } = await generate(algorithm);
  try {
    // Who checks by a shared secret holds it as well.
    const checkingMode = algorithm === 'HS256' ? PRIVATE_MODE : 0o644;
    writeFileSync(privatePath, `${JSON.stringify(signing, null, 2)}\n`, { flag: 'wx', mode: PRIVATE_MODE });
    writeFileSync(publicPath, `${JSON.stringify({ keys: [checking] }, null, 2)}\n`, {
      flag: 'wx',
      mode: checkingMode,
    });
  } catch (error) {
    printError((error as Error).message);
    return EXIT_FAILED;
  }
  return EXIT_OK;
}

/** `gapless token api-key`: prints a key, and what the broker is given of it. */
export async function makeApiKey(argv: readonly string[]): Promise<number> {
  const { values, problems } = readCommandFlags(argv, { ...RIGHTS_OPTIONS, id: { type: 'string' } });
  const grant = readRights(values, problems);
  const id = textOf(values, 'id') ?? '';
  if (!/^[\x21-\x7e]{1,128}$/.test(id)) {
    problems.push({ where: '--id', message: 'expected 1 to 128 visible ASCII characters' });
  }
  if (problems.length > 0) return refuse(problems, 'gapless token --help');
  const key = API_KEY_PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
  const sha256 = createHash('sha256').update(key).digest('hex');
  printLine(JSON.stringify({ key, entry: { id, sha256, ...grant } }, null, 2));
  return EXIT_OK;
}

async function generate(algorithm: Algorithm): Promise<{ signing: JWK; checking: JWK }> {
  if (algorithm === 'HS256') {
    const secret: JWK = { kty: 'oct', k: randomBytes(SECRET_BYTES).toString('base64url'), alg: algorithm };
    const named = { ...secret, kid: randomBytes(8).toString('hex') };
    return { signing: named, checking: named };
  }
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const checking = await exportJWK(publicKey);
  const marks = { alg: algorithm, use: 'sig', kid: await calculateJwkThumbprint(checking) };
  return { signing: { ...(await exportJWK(privateKey)), ...marks }, checking: { ...checking, ...marks } };
}

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { withDeadline } from '../support/deadline.js';
import { publish, publishRequest } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { MAIN_FILE } from '../support/paths.js';
import { bearer, Files } from '../support/tokens.js';

const files = new Files();

async function token(
  argv: readonly string[],
  input = '',
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [MAIN_FILE, 'token', ...argv], { stdio: 'pipe' });
  child.stdin.on('error', () => undefined).end(input);
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await withDeadline('the end of gapless token', code), out, err };
}

async function keyPair(alg: string, name = alg): Promise<{ signing: string; checking: string }> {
  const [signing, checking] = [join(files.folder, `${name}.private`), join(files.folder, `${name}.public`)];
  const made = await token(['keys', '--alg', alg, '--private', signing, '--public', checking]);
  assert.deepEqual(made, { code: 0, out: '', err: '' });
  return { signing, checking };
}

describe('11 token', () => {
  it('11 keys of each algorithm make tokens that explain accepts, and one that was made by others does not', async () => {
    for (const alg of ['HS256', 'RS256', 'ES256', 'EdDSA']) {
      const { signing, checking } = await keyPair(alg);
      const flags = [
        '--expires',
        '1h',
        '--subject',
        'user-7',
        '--publish',
        'a-*',
        '--subscribe',
        'b',
        '--subscribe',
        'c*',
      ];
      const made = await token(['make', '--key', signing, ...flags]);
      assert.deepEqual([made.code, made.err], [0, '']);
      const explained = await token(['explain', '--jwt-keys-file', checking], made.out);
      assert.equal(explained.code, 0, explained.err);
      assert.match(explained.out, new RegExp(`^algorithm +"${alg}"$`, 'm'));
      assert.match(explained.out, /^subject +"user-7"$/m);
      assert.match(explained.out, /^publish +a-\*$/m);
      assert.match(explained.out, /^subscribe +b, c\*$/m);
      assert.match(explained.out, /^admin +no$/m);
      assert.match(explained.out, /^expires +20\d\d-.*Z$/m);
      assert.match(explained.out, /^verified +yes$/m);
      const [header, payload] = made.out.split('.');
      const forged = await token(['explain', '--jwt-keys-file', checking], `${header}.${payload}.AAAA`);
      assert.equal(forged.code, 1);
      assert.match(forged.out, /^verified +no: signature$/m);
    }
  });

  it('11 what it makes, the broker takes', async () => {
    const { signing, checking } = await keyPair('ES256', 'broker');
    const apiKey = JSON.parse((await token(['api-key', '--id', 'ci', '--publish', 'ci'])).out);
    const apiKeysFile = files.write('api-keys.json', JSON.stringify({ apiKeys: [apiKey.entry] }));
    const broker = await BrokerProcess.start('--jwt-keys-file', checking, '--api-keys-file', apiKeysFile);
    const made = await token(['make', '--key', signing, '--expires', '5m', '--publish', 's']);
    await publish(broker.port, 's', 'one', undefined, bearer(made.out.trim()));
    await publish(broker.port, 'ci', 'one', undefined, bearer(apiKey.key));
    const other = { ...publishRequest('s', 'x'), headers: bearer(apiKey.key) };
    assert.equal((await request(broker.port, other)).status, 403);
    assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  });

  it('11 a private key is readable by its owner alone, and no file is overwritten', async () => {
    const { signing, checking } = await keyPair('EdDSA', 'modes');
    assert.equal(statSync(signing).mode & 0o777, 0o600);
    const before = readFileSync(signing, 'utf8');
    const again = await token(['keys', '--alg', 'EdDSA', '--private', signing, '--public', checking]);
    assert.equal(again.code, 1);
    assert.match(again.err, /EEXIST/);
    assert.equal(readFileSync(signing, 'utf8'), before);
    assert.doesNotMatch(readFileSync(checking, 'utf8'), /"d"/);
  });

  it('11 what is wrong is said all at once, with exit code 2', async () => {
    const wrong: [string[], RegExp[]][] = [
      [[], [/expected one of make, explain, keys, api-key/]],
      [['mak'], [/expected one of/]],
      [['make'], [/--key/, /--expires/]],
      [
        ['make', '--key', 'x', '--expires', 'soon', '--publish', 'a b'],
        [/--expires/, /--publish/],
      ],
      [
        ['keys', '--alg', 'none'],
        [/--alg/, /--private/, /--public/],
      ],
      [['api-key', '--id', ''], [/--id/]],
      [['explain', 'eyJ'], [/standard input/]],
      [['make', '--bogus'], [/--bogus/]],
    ];
    for (const [argv, messages] of wrong) {
      const { code, out, err } = await token(argv);
      assert.deepEqual([code, out], [2, ''], argv.join(' '));
      for (const message of messages) assert.match(err, message);
    }
    const notKeys = join(files.folder, 'not-keys');
    writeFileSync(notKeys, 'text');
    assert.equal((await token(['make', '--key', notKeys, '--expires', '1h'])).code, 1);
    assert.equal((await token(['explain'], 'x')).code, 1);
  });

  it('11 a hostile token reaches the terminal without control characters', async () => {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const hostile = `${part({ alg: 'none', kid: '\u001b[2J' })}.${part({ sub: '\u0007\u009b', exp: 1e300 })}.`;
    const { out } = await token(['explain'], hostile);
    assert.ok(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(out), JSON.stringify(out));
  });
});

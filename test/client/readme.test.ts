import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { REPOSITORY_ROOT } from '../support/paths.js';

const README = readFileSync(join(REPOSITORY_ROOT, 'README.md'), 'utf8');
const PROGRAMS = [...README.matchAll(/```js\n(import [^`]*gapless\/client[\s\S]*?)```/g)].map(
  ([, code = '']) => code,
);

describe('the programs of the README', () => {
  const broker = useBroker();

  async function run(program: string): Promise<string[]> {
    const code = program.replaceAll('127.0.0.1:8080', `127.0.0.1:${broker.port}`);
    const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { cwd: REPOSITORY_ROOT });
    let output = '';
    child.stdout.on('data', (text: Buffer) => (output += text));
    child.stderr.on('data', (text: Buffer) => (output += text));
    const [exitCode] = await once(child, 'close');
    assert.equal(exitCode, 0, output);
    return output.trim().split('\n');
  }

  it('publish, and subscribe to it', async () => {
    const lines = (await run(PROGRAMS[0] ?? '')).map((line) => line.replace(/^[a-z0-9]+\./, ''));
    assert.deepEqual(lines, ['1 placed 12.5', '2 message 20', '3 message 30', '4 message 40']);
  });

  it('follow several streams', async () => {
    const lines = await run(PROGRAMS[1] ?? '');
    assert.deepEqual(lines, ['jobs-1 done', 'jobs-2 done', 'true']);
  });

  it('follow all streams whose names begin alike', async () => {
    const lines = await run(PROGRAMS[2] ?? '');
    assert.deepEqual(lines, ['rooms-1 hello', 'rooms-2 made just now', 'true']);
  });

  it('follow the tokens of a model', async () => {
    assert.equal((await run(PROGRAMS[3] ?? '')).join(''), 'No token is lost.');
  });

  it('are all of them tested here', () => assert.equal(PROGRAMS.length, 4));
});

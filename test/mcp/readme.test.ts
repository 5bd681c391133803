import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { withDeadline } from '../support/deadline.js';
import { REPOSITORY_ROOT } from '../support/paths.js';
import { connectSdkClient } from './sdk-clients.js';

const README = readFileSync(join(REPOSITORY_ROOT, 'README.md'), 'utf8');
const PROGRAMS = [...README.matchAll(/```js\n(import [^`]*gapless\/mcp[\s\S]*?)```/g)];

/** On a port of its own, which it tells. */
const LISTEN = "listen(0, '127.0.0.1', function () { process.send(this.address().port); })";

describe('the MCP server of the README', () => {
  const broker = useBroker();

  it('serves clients of both versions', async (context) => {
    assert.equal(PROGRAMS.length, 1);
    const program = (PROGRAMS[0]?.[1] ?? '')
      .replace('127.0.0.1:8080', `127.0.0.1:${broker.port}`)
      .replace("listen(3000, '127.0.0.1')", LISTEN);
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: REPOSITORY_ROOT,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    context.after(() => child.kill('SIGKILL'));
    const [port] = await withDeadline('the server', once(child, 'message'));
    const url = `http://127.0.0.1:${port}/mcp`;
    for (const version of [1, 2] as const) {
      const client = await connectSdkClient(version, url);
      assert.equal((await client.callTool('hello', {})).text, 'Hello.');
      await client.close();
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BrokerProcess, useBroker } from '../support/broker-process.js';
import { runCommand, runConformance } from './run-conformance.js';
import { WrongServer } from './wrong-server.js';

describe('gapless conformance', () => {
  const broker = useBroker();

  it('prints a table for each section and ends with 0 when nothing failed', async () => {
    const { code, stdout } = await runCommand('--url', `http://127.0.0.1:${broker.port}/`, '--only', '2.4,8');
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^2 Streams\n {2}ok {4}2\.4 {2}a name is/);
    assert.match(stdout, /\n8 Errors\n {2}ok {4}8 {4}an unknown path/);
    assert.match(stdout, /\n\d+ passed, 0 failed, 0 skipped\n$/);
    assert.ok(!/^ {2}\w+ +(1|2\.1|4\.4) /m.test(stdout), stdout);
  });

  it('ends with 1 when a check failed, and says what was wrong', async () => {
    const server = await WrongServer.start(broker.port, { answer: ({ headers }) => delete headers['allow'] });
    const { code, stdout } = await runCommand('--url', String(server.url), '--only', '8');
    await server.stop();
    assert.equal(code, 1);
    assert.match(stdout, / {2}FAIL {2}8 .*Allow\n {13}Allow of .* has no GET/);
    assert.match(stdout, /\d+ passed, 1 failed, 0 skipped\n$/);
  });

  it('sends its token with every request', async () => {
    const without: string[] = [];
    const server = await WrongServer.start(broker.port, {
      request: ({ headers, url, method }) => {
        if (headers.authorization !== 'Bearer a.b.c') without.push(`${method} ${url}`);
      },
    });
    const { report } = await runConformance(Number(server.url.port), '--token', 'a.b.c', '--only', '4.1');
    await server.stop();
    assert.equal(report.failed, 0);
    assert.deepEqual(without, []);
  });

  it('ends with 1 where nothing answers', async () => {
    const gone = await BrokerProcess.start();
    await gone.stop();
    const { code, stderr } = await runCommand('--url', `http://127.0.0.1:${gone.port}`);
    assert.equal(code, 1);
    assert.match(stderr, /^gapless: nothing to check at http:\/\/127\.0\.0\.1:\d+\/: .*ECONNREFUSED/);
  });

  it('refuses what it does not understand with 2, all at once', async () => {
    const { code, stderr } = await runCommand(
      '--ulr',
      'x',
      '--only',
      '4.4,77',
      '--json',
      '--json',
      '--token',
    );
    assert.equal(code, 2);
    for (const expected of [
      /--ulr: unknown flag, did you mean --url\?/,
      /--url: is missing/,
      /--only: 77 is no section with checks/,
      /--json: given twice/,
      /--token: has no value/,
    ])
      assert.match(stderr, expected);
    assert.equal((await runCommand('--url', 'ftp://x')).code, 2);
    assert.equal((await runCommand('--help')).code, 0);
  });
});

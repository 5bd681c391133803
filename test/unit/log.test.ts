import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';

/**
 * Runs a script in a process of its own, because a logger writes to the real standard output; gives the
 * lines.
 */
function linesOf(script: string): Record<string, unknown>[] {
  return run(script, 'pipe')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

function run(script: string, stdout: number | 'pipe'): string {
  const log = JSON.stringify(new URL('../../../dist/log.js', import.meta.url).href);
  const source = `const { createLogger } = await import(${log}); ${script}`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    stdio: ['ignore', stdout, 'inherit'],
  });
}

test('a line is JSON with the level, the time in ISO form and the thread', () => {
  const [line] = linesOf("createLogger({ level: 'info', thread: 'edge-1' }).info({ port: 1 }, 'listening')");
  assert.equal(line?.level, 30);
  assert.equal(line?.thread, 'edge-1');
  assert.equal(line?.port, 1);
  assert.equal(line?.msg, 'listening');
  assert.match(String(line?.time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test('the last line before an exit is written', () => {
  const lines = linesOf(`
    const log = createLogger({ level: 'info', thread: 'main' });
    for (let i = 0; i < 1000; i++) log.info({ i });
    process.exit(0);
  `);
  assert.equal(lines.length, 1000);
  assert.equal(lines.at(-1)?.i, 999);
});

test('lines below the level are left out', () => {
  const [line, ...others] = linesOf(
    "const log = createLogger({ level: 'warn', thread: 'main' }); log.info('a'); log.warn('b')",
  );
  assert.equal(line?.msg, 'b');
  assert.deepEqual(others, []);
});

test('credentials and event data are never written', () => {
  const headers = "{ authorization: 'secret', cookie: 'secret' }";
  const fields = `{ token: 'secret', request: { body: 'secret', headers: ${headers} }, data: 'secret' }`;
  const lines = linesOf(`createLogger({ level: 'info', thread: 'main' }).info(${fields}, 'refused')`);
  assert.doesNotMatch(JSON.stringify(lines), /secret/);
});

test('a full disk with the lines on it ends nothing', () => {
  const full = openSync('/dev/full', 'w');
  // Fails if the process does.
  run("const log = createLogger({ level: 'info', thread: 'main' }); log.info('a'); log.info('b')", full);
  closeSync(full);
});

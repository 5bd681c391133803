import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REPOSITORY_ROOT } from './support/paths.js';

/**
 * Runs the whole suite: `npm test`. Arguments are patterns that the names of tests must match; an argument that names a
 * test file or folder, as `fault/` or `contract/resume`, chooses files instead.
 */

const BUILT_TESTS = fileURLToPath(new URL('.', import.meta.url));
/** A broker with its edges, and the test that drives it, take two cores. */
const FILES_AT_A_TIME = 1;
/** Only hangs reach it; what a test waits for has deadlines of its own. Long runs set more. */
const TEST_TIMEOUT_MS = Number(process.env.TEST_TIMEOUT_MS ?? 300_000);

function testFiles(): string[] {
  const names = readdirSync(BUILT_TESTS, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.test.js') && hasSource(name))
    .sort()
    .map((name) => join(BUILT_TESTS, name));
}

/** What a test that was deleted or renamed left behind in the build folder is not run. */
function hasSource(name: string): boolean {
  return existsSync(join(REPOSITORY_ROOT, 'test', name.replace(/\.js$/, '.ts')));
}

const all = testFiles();
const namesFile = (argument: string) => (file: string) => relative(BUILT_TESTS, file).startsWith(argument);
const fileArguments = process.argv.slice(2).filter((argument) => all.some(namesFile(argument)));
const nameArguments = process.argv.slice(2).filter((argument) => !fileArguments.includes(argument));
const chosen = all.filter(
  (file) => fileArguments.length === 0 || fileArguments.some((name) => namesFile(name)(file)),
);

const runner = spawn(
  process.execPath,
  [
    '--test',
    '--test-reporter=spec',
    `--test-concurrency=${FILES_AT_A_TIME}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    ...nameArguments.map((pattern) => `--test-name-pattern=${pattern}`),
    ...chosen,
  ],
  { cwd: REPOSITORY_ROOT, stdio: 'inherit' },
);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
runner.on('error', (error) => {
  console.error(error);
  process.exitCode = 1;
});
runner.on('close', (code) => {
  process.exitCode = code ?? 1;
});

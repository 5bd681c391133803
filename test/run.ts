import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REPOSITORY_ROOT } from './support/paths.js';

/**
 * Runs the whole suite: `npm test`. Arguments are patterns that the names of tests must match; an argument that names a
 * test file or folder, as `fault/` or `contract/resume`, chooses files instead.
 */

const BUILT_TESTS = fileURLToPath(new URL('.', import.meta.url));
/** What loads the machine as far as it goes, and threads that are to race, have it to themselves. */
const ALONE = ['contract/bench-', 'litmus'];
/** One more than the processors of the smallest machine: they wait for answers, deadlines and disks as well. */
const FILES_AT_A_TIME = 3;
/** Only hangs reach it; what a test waits for has deadlines of its own. Long runs set more. */
const TEST_TIMEOUT_MS = Number(process.env.TEST_TIMEOUT_MS ?? 300_000);
const END_IN_TIME = new URL('./support/end-in-time.js', import.meta.url);

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
const missing = nameArguments.filter((argument) => /^[\w-]+\/[\w-]*$/.test(argument));
if (missing.length > 0) {
  // Taken for the name of a test it would have none run, and that would pass.
  console.error(`no test file begins with ${missing.join(', ')}`);
  process.exit(2);
}
const chosen = all.filter(
  (file) => fileArguments.length === 0 || fileArguments.some((name) => namesFile(name)(file)),
);

const isAlone = (file: string) => ALONE.some((name) => namesFile(name)(file));
let running: ChildProcess | undefined;
let isEnded = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isEnded = true;
    running?.kill(signal);
  });
}

/** @returns the runner's exit code, not 0 if a test has failed or the runner was ended. */
async function run(files: string[], filesAtATime: number): Promise<number> {
  if (files.length === 0) return 0;
  running = spawn(
    process.execPath,
    [
      '--test',
      '--test-reporter=spec',
      `--import=${END_IN_TIME}`,
      `--test-concurrency=${filesAtATime}`,
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      ...nameArguments.map((pattern) => `--test-name-pattern=${pattern}`),
      ...files,
    ],
    { cwd: REPOSITORY_ROOT, stdio: 'inherit' },
  );
  const [code, signal] = (await once(running, 'close')) as [number | null, string | null];
  if (isEnded || signal !== null) process.exit(1);
  return code ?? 1;
}

const together = await run(
  chosen.filter((file) => !isAlone(file)),
  FILES_AT_A_TIME,
);
const alone = await run(chosen.filter(isAlone), 1);
process.exitCode = Math.max(together, alone);

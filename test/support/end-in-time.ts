/**
 * Loaded before each test file (`run.ts`). What a test has left open would keep the file's process until the runner's
 * limit: soon after its tests are over the file fails, and says what it was.
 */

import { after } from 'node:test';
import { isMainThread } from 'node:worker_threads';

/** For hooks of the file that run after this one. */
const LINGER_MS = 20_000;

// Not in the runner, nor in threads and processes that a test begins, all of which are told to load this as well.
const isTestFile = process.env.NODE_TEST_CONTEXT !== undefined && process.argv[1]?.endsWith('.test.js');
if (isMainThread && isTestFile === true) {
  after(() => {
    const late = setTimeout(() => {
      console.error(`the tests are over, and the process is kept by ${process.getActiveResourcesInfo()}`);
      process.exit(1);
    }, LINGER_MS);
    late.unref();
  });
}

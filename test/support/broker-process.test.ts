import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { BrokerProcess } from './broker-process.js';
import { DeadlineError } from './deadline.js';
import { temporaryDirectory } from './durable-broker.js';

const DEADLINE_MS = 500;

it('a broker that does not listen in time is given up, and its process does not stay', async (context) => {
  // It waits for somebody to write its settings into a pipe, and nobody does.
  const pipe = join(temporaryDirectory(context), 'settings');
  execFileSync('mkfifo', [pipe]);
  const launching = BrokerProcess.launch({ flags: ['--config', pipe], deadlineMs: DEADLINE_MS });
  await assert.rejects(launching, DeadlineError);
  assert.deepEqual(processesWith(pipe), []);
});

/** Ids of the processes that have a word on their command line. */
function processesWith(word: string): string[] {
  const ids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return ids.filter((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0').includes(word);
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
}

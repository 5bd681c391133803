import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, test } from 'node:test';
import { makeMutant } from './mutant.js';
import { PLANTED_BUGS } from './planted-bugs.js';

/** Each is found long before; which seeds find it changes with the code. */
const SEEDS_MAX = 600;

interface Ended {
  readonly code: number;
  readonly output: string;
}

function simulateMutant(main: string, seeds: string): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, '--seeds', seeds, '--until-failure'], (error, output) => {
      resolve({ code: Number(error?.code ?? 0), output });
    });
  });
}

describe('the simulator finds planted bugs', () => {
  for (const bug of PLANTED_BUGS) {
    test(bug.name, async (context) => {
      const mutant = makeMutant(bug);
      const { code, output } = await simulateMutant(mutant.main, `1..${SEEDS_MAX}`);
      mutant.remove();
      assert.equal(code, 1, `not found by ${SEEDS_MAX} seeds: ${output}`);
      context.diagnostic(output.split('\n', 1)[0] ?? '');
    });
  }
});

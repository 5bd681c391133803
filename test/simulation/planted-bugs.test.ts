import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, test } from 'node:test';
import { makeMutant } from './mutant.js';
import { PLANTED_BUGS } from './planted-bugs.js';

/** Which seeds find a bug changes with the code; most take a few dozen, the rarest are found by one seed in hundreds. */
const FIRST_SEED = 601;
const SEEDS_MAX = 1200;

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
      const { code, output } = await simulateMutant(
        mutant.main,
        `${FIRST_SEED}..${FIRST_SEED + SEEDS_MAX - 1}`,
      );
      mutant.remove();
      assert.equal(code, 1, `not found by ${SEEDS_MAX} seeds: ${output}`);
      context.diagnostic(output.split('\n', 1)[0] ?? '');
    });
  }
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { REPOSITORY_ROOT } from '../support/paths.js';
import { showFailure } from './show-outcome.js';
import { type Outcome, simulate } from './simulate.js';

/** How long seeds that nobody has run before are run for. */
const FRESH_MS = 20_000;
/** Fresh ranges begin this far apart: more seeds than one second of the clock takes. */
const SEEDS_PER_SECOND = 1000;

interface Guard {
  readonly seed: number;
  readonly guards: string;
}

const guards = JSON.parse(
  readFileSync(join(REPOSITORY_ROOT, 'test/simulation/seeds.json'), 'utf8'),
) as readonly Guard[];

function assertPassed(outcome: Outcome): void {
  assert.deepEqual(outcome.verdicts, [], showFailure(outcome));
}

describe('the broker in a world that a seed draws', () => {
  test('keeps its promise in seeds that it has not met before', async (context) => {
    const startedAt = performance.now();
    const first = Math.floor(Date.now() / 1000) * SEEDS_PER_SECOND;
    let seed = first;
    for (; performance.now() - startedAt < FRESH_MS; seed++) assertPassed(await simulate(seed));
    context.diagnostic(`seeds ${first}..${seed - 1}`);
  });

  for (const { seed, guards: what } of guards) {
    test(`${what} (seed ${seed})`, async () => assertPassed(await simulate(seed)));
  }

  test('goes the same way when a seed is run again', async () => {
    for (let seed = 1; seed <= 8; seed++) assertPassed(await simulate(seed, { twice: true }));
  });

  test('sees events, resumes, refusals and steps within steps', async () => {
    const seen = { events: 0, resumes: 0, refusals: 0 };
    for (let seed = 1; seed <= 20; seed++) {
      const outcome = await simulate(seed);
      seen.events += outcome.events;
      seen.resumes += outcome.resumes;
      seen.refusals += outcome.refusals;
    }
    assert.ok(seen.events > 1000 && seen.resumes > 50 && seen.refusals > 20, JSON.stringify(seen));
  });
});

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import fc from 'fast-check';

/** How long each fuzzer runs: moments in a run of the suite, minutes by hand. */
const SECONDS = Number(process.env.FUZZ_SECONDS ?? 0.8);
/** Drawn at a time, so that the last is over when the time is. */
const BATCH = 20;

/**
 * Draws inputs and checks each until the time is over. A failure is shrunk, and its input is printed with the seed
 * that repeats it, which `GAPLESS_TEST_SEED` takes.
 */
export async function fuzz<T>(
  context: TestContext,
  inputs: fc.Arbitrary<T>,
  check: (input: T) => Promise<void> | void,
): Promise<void> {
  assert.ok(SECONDS > 0, `FUZZ_SECONDS is no number of seconds: ${process.env.FUZZ_SECONDS}`);
  const first = Number(process.env.GAPLESS_TEST_SEED ?? randomInt(0x7000_0000));
  const property = fc.asyncProperty(inputs, async (input) => {
    await check(input);
  });
  const endMs = performance.now() + SECONDS * 1000;
  let seed = first;
  do await fc.assert(property, { seed: seed++, numRuns: BATCH });
  while (performance.now() < endMs);
  context.diagnostic(`${(seed - first) * BATCH} inputs, from seed ${first}`);
}

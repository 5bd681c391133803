import { test } from 'node:test';
import { Prng, seededPrng } from '../support/prng.js';
import { inVirtualTime } from '../support/virtual-time.js';
import { SharedLogWorld } from './shared-log-world.js';

/** How long worlds are drawn: moments in a run of the suite, minutes by hand. */
const SECONDS = Number(process.env.SHARED_LOG_SECONDS ?? 2);
const ROUNDS = 4;

test('brokers that share a log agree and lose, double and change nothing, whatever goes wrong at once (I1, I3, I6, I9)', async (context) => {
  const seeds = seededPrng(context);
  const endMs = performance.now() + SECONDS * 1000;
  let worlds = 0;
  let { seed } = seeds;
  do {
    context.diagnostic(`world of GAPLESS_TEST_SEED=${seed}`);
    const prng = new Prng(seed);
    // In half of the worlds the log loses entries as well.
    const loses = seed % 2 === 1;
    await inVirtualTime(() => new SharedLogWorld(prng, { loses }).run(ROUNDS));
    worlds++;
    seed = seeds.below(0x1_0000_0000);
  } while (performance.now() < endMs);
  context.diagnostic(`${worlds} worlds`);
});

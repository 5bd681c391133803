import { parseArgs } from 'node:util';
import { type Results, runSeeds } from './seed-crew.js';
import { showFailure } from './show-outcome.js';
import { simulate } from './simulate.js';

/**
 * `npm run simulate -- --seeds A..B`: runs those seeds and prints the ones that fail, each with the line that repeats it.
 * The exit code is 1 if any did.
 */

const USAGE = `npm run simulate -- --seeds A..B [--processes N] [--until-failure] [--twice]

  --seeds A..B      the seeds to run; a single number is one seed
  --processes N     how many run side by side (1)
  --until-failure   stop at the first seed that fails
  --twice           run each seed twice, and fail if the two saw anything different`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    processes: { type: 'string', default: '1' },
    'until-failure': { type: 'boolean', default: false },
    twice: { type: 'boolean', default: false },
    crew: { type: 'boolean', default: false },
  },
});

if (values.crew) joinCrew();
else process.exitCode = await run();

async function run(): Promise<number> {
  const range = /^(\d+)(?:\.\.(\d+))?$/.exec(values.seeds ?? '');
  const processes = Number(values.processes);
  if (range === null || !(processes >= 1 && processes <= 64)) {
    console.error(USAGE);
    return 2;
  }
  const first = Number(range[1]);
  const last = Number(range[2] ?? first);
  const options = { processes, twice: values.twice, untilFailure: values['until-failure'] };
  const results = await runSeeds(first, last, options, (outcome) => console.log(showFailure(outcome)));
  console.log(summary(results));
  return results.failed > 0 ? 1 : 0;
}

function summary({ seeds, failed, seconds, steps, events, resumes, refusals }: Results): string {
  const rate = Math.round((60 * seeds) / seconds);
  return (
    `${seeds} seeds, ${failed} failed, ${seconds.toFixed(1)} s, ${rate} seeds a minute; ` +
    `${steps} steps, ${events} events read, ${resumes} resumes, ${refusals} refusals`
  );
}

/** One of several processes: is sent a seed at a time, and answers with what came of it. */
function joinCrew(): void {
  process.on('message', async ({ seed, twice }: { seed: number; twice: boolean }) => {
    process.send?.(await simulate(seed, { twice }));
  });
}

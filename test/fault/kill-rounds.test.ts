import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { range } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
import { freshStream } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { seededPrng } from '../support/prng.js';
import { scrape, total } from '../support/prometheus.js';
import { KillCrew } from './kill-crew.js';

/** How often each broker is killed; more for a long run. */
const ROUNDS = Number(process.env.KILL_ROUNDS ?? 5);
const STREAMS = 3;
const ANSWERS_MIN = 20;
const ANSWERS_MAX = 150;
/** From an answer to the kill, so that it comes at any moment of a commit. */
const KILL_DELAY_MS_MAX = 15;

const SETUPS: Readonly<Record<string, readonly string[]>> = {
  'one edge': ['--threads', '1'],
  'two edges and rings so small that subscribers read from the log': [
    ...['--threads', '2'],
    ...['--ring-bytes', '64KiB', '--replay-cache-bytes', '1MiB'],
  ],
  'two edges and a sync now and then, for the system keeps what the process wrote': [
    ...['--threads', '2'],
    ...['--fsync', 'interval', '--fsync-interval-ms', '1s'],
  ],
};

describe('SIGKILL at any moment, again and again, and a start in the same directory', () => {
  for (const [name, flags] of Object.entries(SETUPS)) {
    it(`what was acknowledged or seen is there as it was, and every resume is exact, with ${name} (I1, I2, I3, I4, I6)`, (context) =>
      run(context, flags));
  }
});

async function run(context: TestContext, flags: readonly string[]): Promise<void> {
  assert.ok(Number.isInteger(ROUNDS) && ROUNDS > 0, `KILL_ROUNDS is no number of rounds: ${ROUNDS}`);
  const prng = seededPrng(context);
  const broker = await DurableBroker.start(context, ...flags);
  const streams = range(1, STREAMS).map((index) => freshStream(`killed-${index}`));
  const crew = new KillCrew({ prng, port: broker.port, streams });

  for (const round of range(1, ROUNDS)) {
    crew.begin(round);
    await crew.untilAnswers(prng.between(ANSWERS_MIN, ANSWERS_MAX));
    await delay(prng.below(KILL_DELAY_MS_MAX));
    crew.expectKill();
    await broker.process.kill();
    await crew.untilNoticed();
    await broker.startAgain();
    await crew.audit.run();
    crew.checker.assertClean();
  }
  await crew.catchUp();
  await crew.audit.runWhole();
  crew.checker.assertClean();

  const { eventCount, resumeCount, refusalCount } = crew.checker;
  const { found, lost } = crew.checker.unanswered;
  context.diagnostic(
    `${crew.answers} publishes answered, ${found} unanswered ones there and ${lost} not; ` +
      `${eventCount} events read over ${resumeCount} resumes`,
  );
  assert.equal(refusalCount, 0, 'refused although everything is kept');
  assert.equal(total(await scrape(broker.port), METRIC.seamViolations), 0);
  await broker.end();
}

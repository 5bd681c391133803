import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { range } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
import { createStream, freshStream, readAll } from '../support/gapless-client.js';
import { seededPrng } from '../support/prng.js';
import { RetryingCrew } from './retrying-crew.js';

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 4);
const ANSWERS_MAX = 150;

it('3.4 SIGKILL under producers and keys that retry until they are answered: every event stands there exactly once', async (context) => {
  const prng = seededPrng(context);
  const broker = await DurableBroker.start(context, '--threads', '3');
  const streams = range(1, 2).map((index) => freshStream(`exactly-${index}`));
  for (const stream of streams) await createStream(broker.port, stream);
  const crew = new RetryingCrew({ prng, port: broker.port, streams });
  context.after(() => crew.abandon());
  crew.begin();
  for (const _round of range(1, ROUNDS)) {
    await crew.untilAnswers(prng.between(1, ANSWERS_MAX));
    if (prng.chance(0.3)) await delay(prng.below(20));
    await broker.killAndStart();
  }
  await crew.untilAnswers(ANSWERS_MAX);
  await crew.end();

  for (const stream of streams) {
    const events = await readAll(broker.port, stream);
    crew.observeAll(stream, events);
    assert.equal(
      events.length,
      crew.eventCount(stream),
      `${stream} has what was published, and nothing else`,
    );
  }
  crew.checker.assertClean();
  context.diagnostic(
    `${crew.answers} answers, ${crew.cuts} publishes cut off, of which ${crew.duplicates} stood there already`,
  );
  assert.ok(crew.cuts > 0, 'some publishes were cut off and sent again');
  await broker.end();
});

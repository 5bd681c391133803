import assert from 'node:assert/strict';
import { it } from 'node:test';
import { cursorOf } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { DurableBroker } from '../support/durable-broker.js';
import { assertProblem, readAll, stateOf } from '../support/gapless-client.js';
import { METRIC } from '../support/metric-names.js';
import { scrape, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { FilledStream } from './filled-stream.js';

const KIB = 1024;
const LIMIT_BYTES = 1024 * KIB;
const EVENT_BYTES = 2 * KIB;
/** About as much as the limit. */
const BATCH_EVENTS = 500;
const STREAMS = 4;

async function untilWithinLimit(port: number): Promise<void> {
  await eventually('the log to be within its limit', async () => {
    const kept = total(await scrape(port), METRIC.logKeptBytes);
    return kept > 0 && kept <= LIMIT_BYTES;
  });
}

it('2.1 above the limit of the whole log the oldest events go first, and no publisher is refused (I2)', async (context) => {
  const broker = await DurableBroker.start(
    context,
    ...['--log-bytes-max', '1MiB', '--ring-bytes', '4KiB', '--retention-bytes', '0'],
  );
  const small = await FilledStream.create(broker.port, { eventBytes: 100 });
  await small.fill(1);
  const streams: FilledStream[] = [];
  for (let i = 0; i < STREAMS; i++) {
    const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
    await stream.fill(BATCH_EVENTS);
    streams.push(stream);
    await untilWithinLimit(broker.port);
  }
  const [oldest, newest] = [streams[0] as FilledStream, streams[STREAMS - 1] as FilledStream];
  const metrics = await scrape(broker.port);
  const trimmed = total(metrics, METRIC.logLimitTrimmedBytes);
  const published = STREAMS * BATCH_EVENTS * oldest.frameBytesMin;
  assert.ok(trimmed >= published - LIMIT_BYTES - STREAMS * 64 * KIB && trimmed < published, `${trimmed}`);
  assert.equal(total(metrics, METRIC.publishesRefused), 0);

  await eventually('of the oldest only the last block to be left', async () => {
    return ((await stateOf(broker.port, oldest.name)).logFloor ?? 0) > BATCH_EVENTS - 64;
  });
  assert.ok(((await stateOf(broker.port, newest.name)).logFloor ?? 0) < BATCH_EVENTS / 2);
  assert.equal((await readAll(broker.port, small.name)).length, 1, 'the only block of a stream stays');
  const refusal = await SseSubscription.ask(broker.port, oldest.name, {
    lastEventId: cursorOf(oldest.epoch, 10),
  });
  const problem = assertProblem(await refusal.refusal(), 410, 'resume_unavailable');
  assert.equal(problem.reason, 'evicted');
  assert.equal(problem.earliest, cursorOf(oldest.epoch, (problem.floor ?? 0) - 1));

  for (const stream of streams) {
    const lowest = (await stateOf(broker.port, stream.name)).logFloor ?? 0;
    const events = await readAll(broker.port, stream.name);
    const first = stream.head - events.length + 1;
    assert.ok(first <= lowest, 'what is above the floor is there');
    stream.assertEvents(events, { first, last: stream.head });
  }
  await broker.end();
});

it('2.1 a limit that was lowered is applied at the start, and readers go on from the new floor', async (context) => {
  const broker = await DurableBroker.start(
    context,
    ...['--log-bytes-max', '64MiB', '--ring-bytes', '4KiB', '--retention-bytes', '0'],
  );
  const stream = await FilledStream.create(broker.port, { eventBytes: EVENT_BYTES });
  await stream.fill(8 * BATCH_EVENTS);
  assert.ok(total(await scrape(broker.port), METRIC.logKeptBytes) > 7 * LIMIT_BYTES);
  await broker.restart('--log-bytes-max', '1MiB');
  await untilWithinLimit(broker.port);
  const { logFloor } = await eventually('the floor to be told', async () => {
    const state = await stateOf(broker.port, stream.name);
    return (state.logFloor ?? 0) > 1 && state;
  });
  const events = await readAll(broker.port, stream.name);
  stream.assertEvents(events, { first: logFloor ?? 0, last: stream.head });
  await broker.end();
});

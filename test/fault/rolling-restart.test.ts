import assert from 'node:assert/strict';
import { it } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { temporaryDirectory } from '../support/durable-broker.js';
import { createStream, freshStream, readAll, stateOf } from '../support/gapless-client.js';
import { seededPrng } from '../support/prng.js';
import { TcpBalancer } from '../support/tcp-balancer.js';
import { Followers } from './followers.js';
import { RetryingCrew } from './retrying-crew.js';

const READERS = 60;
const ROLLS = 2;
const ANSWERS = 40;
const DRAIN_MS = 600;
const RETRY_MS = 800;

it('10 a rolling restart: no event is lost, no reader has a gap, and those who come back are spread', async (context) => {
  const balancer = await TcpBalancer.start();
  context.after(() => balancer.stop());
  const directory = temporaryDirectory(context);
  const start = async (...flags: string[]): Promise<BrokerProcess> => {
    const drain = ['--drain-ms', String(DRAIN_MS), '--retry-ms', String(RETRY_MS)];
    const broker = await BrokerProcess.start('--data-dir', directory, ...drain, ...flags);
    context.after(() => broker.isRunning && broker.kill());
    return broker;
  };
  let broker = await start();
  balancer.targets = [broker.port];
  const { port } = balancer;
  const stream = freshStream('rolled');
  await createStream(port, stream);
  const crew = new RetryingCrew({ prng: seededPrng(context), port, streams: [stream] });
  const followers = new Followers({ port, stream, count: READERS, checker: crew.checker });
  context.after(() => {
    crew.abandon();
    followers.abandon();
  });
  followers.begin();
  crew.begin();

  for (const roll of range(1, ROLLS)) {
    await crew.untilAnswers(ANSWERS);
    await eventually('all readers to be there', async () => {
      return (await stateOf(broker.port, stream)).subscribers === READERS;
    });
    // The next one is started first: it waits for the directory, and listens when it has all of the log.
    const starting = start('--data-dir-wait-ms', '30s');
    broker.signal('SIGTERM');
    assert.deepEqual(await broker.untilExit(), { code: 0, signal: null });
    assert.deepEqual(broker.errors, []);
    broker = await starting;
    balancer.targets = [broker.port];
    await eventually('the readers to be told', () => followers.told.length === roll * READERS);
  }
  await crew.untilAnswers(ANSWERS);
  await crew.end();
  await followers.end();

  const { head } = await stateOf(broker.port, stream);
  await Promise.all(followers.readers.map((reader) => reader.catchUp(head)));
  const events = await readAll(broker.port, stream);
  crew.observeAll(stream, events);
  assert.equal(events.length, crew.eventCount(stream), 'what was published is there, and nothing else');
  crew.checker.assertClean();
  assertSpread(followers.told);
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  context.diagnostic(
    `${crew.answers} answers, ${crew.cuts} publishes cut off, ${followers.told.length} sent away`,
  );
});

/** By what they were told: nobody before the broker is gone, and no moment at which many come. */
function assertSpread(told: readonly number[]): void {
  const [least, most] = [RETRY_MS / 2, DRAIN_MS + 1.5 * RETRY_MS];
  for (const ms of told) assert.ok(ms >= least && ms <= most + 1, `${ms} ms`);
  assert.ok(new Set(told).size > 0.8 * told.length, 'nearly all were told a time of their own');
  const width = (most - least) / 10;
  for (const tenth of range(0, 9)) {
    const count = told.filter((ms) => Math.floor((ms - least) / width) === tenth).length;
    assert.ok(count <= told.length / 3, `${count} of ${told.length} come within ${width} ms`);
  }
}

it('10 a start that waits for the directory in vain says who has it, and ends with 1', async (context) => {
  const flags = ['--data-dir', temporaryDirectory(context)];
  const owner = await BrokerProcess.start(...flags);
  context.after(() => owner.isRunning && owner.kill());
  const { exit, stderr } = await BrokerProcess.launchInVain({
    flags: [...flags, '--data-dir-wait-ms', '200ms'],
  });
  assert.equal(exit.code, 1);
  assert.match(stderr, new RegExp(`in use by process ${owner.pid}`));
  assert.deepEqual(await owner.stop(), { code: 0, signal: null });
});

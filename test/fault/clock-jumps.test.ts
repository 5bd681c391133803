import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { temporaryDirectory } from '../support/durable-broker.js';
import { createStream, freshStream, publish, publishLines, stateOf } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { JumpingClock, NO_JUMPING_CLOCK } from '../support/jumping-clock.js';
import { SseSubscription } from '../support/sse-client.js';

const DAY_S = 86_400;
const LONG_MS = 3_600_000;
/** The shortest that there is. */
const SHORT_MS = 1000;
const LINES = ['one', 'two', 'three'];
const HEARTBEAT_FLAGS = ['--heartbeat-interval-ms', '200ms'];

describe('somebody sets the clock of the machine', () => {
  for (const [name, isDurable] of [
    ['in memory', false],
    ['with a log', true],
  ] as const) {
    it(`2.1, 4.3 forward and back, ${name}: what is young stays, what is old goes, and heartbeats go on`, async (context) => {
      const clock = JumpingClock.build(temporaryDirectory(context));
      if (clock === null) return context.skip(NO_JUMPING_CLOCK);
      const dataFlags = isDurable ? ['--data-dir', temporaryDirectory(context)] : [];
      const broker = await start(context, clock, ...dataFlags);
      const { port } = broker;
      const [kept, unused] = [freshStream('kept'), freshStream('unused')];
      await createStream(port, kept, { retention: { ageMs: LONG_MS } });
      await createStream(port, unused, { ttlMs: LONG_MS });
      const { epoch } = await publishLines(port, kept, LINES);
      await publish(port, unused, 'one');
      const subscription = await SseSubscription.open(port, kept, { cursor: 'earliest' });
      await subscription.untilEvents(LINES.length);

      for (const seconds of [DAY_S, -DAY_S, 0]) {
        const brief = await shortLived(port);
        clock.jumpTo(seconds);
        await brief.untilGone();
        const { floor, logFloor, ...state } = await stateOf(port, kept);
        assert.deepEqual(
          { epoch: state.epoch, floor, logFloor },
          { epoch, floor: 1, logFloor: isDurable ? 1 : null },
        );
        assert.equal((await stateOf(port, unused)).head, 1);
        const { comments } = subscription;
        await subscription.until('more heartbeats', () => subscription.comments > comments + 1);
      }
      await publish(port, kept, 'four');
      await subscription.untilEvents(LINES.length + 1);
      subscription.cut();
      assert.deepEqual(await broker.stop(), { code: 0, signal: null });
      assert.deepEqual(broker.errors, []);
    });
  }

  it('2.1 back while the broker is down: events of before age on, and those of after are not older', async (context) => {
    const clock = JumpingClock.build(temporaryDirectory(context));
    if (clock === null) return context.skip(NO_JUMPING_CLOCK);
    const broker = await start(context, clock, '--data-dir', temporaryDirectory(context));
    const { port } = broker;
    const [brief, kept] = [freshStream('brief'), freshStream('kept')];
    await createStream(port, brief, { retention: { ageMs: SHORT_MS } });
    await createStream(port, kept, { retention: { ageMs: LONG_MS } });
    await publishLines(port, brief, LINES);
    await publishLines(port, kept, LINES);
    await broker.kill();
    clock.jumpTo(-DAY_S);
    const next = await broker.startAgain();
    context.after(() => next.isRunning && next.kill());
    await untilEmpty(port, brief);
    await publishLines(port, kept, LINES);
    assert.deepEqual(await next.stop(), { code: 0, signal: null });
    clock.jumpTo(0);
    const last = await next.startAgain();
    context.after(() => last.isRunning && last.kill());
    await (await shortLived(port)).untilGone();
    const { logFloor, head } = await stateOf(port, kept);
    assert.deepEqual({ logFloor, head }, { logFloor: 1, head: 2 * LINES.length });
    assert.deepEqual(await last.stop(), { code: 0, signal: null });
  });
});

async function start(context: TestContext, clock: JumpingClock, ...flags: string[]): Promise<BrokerProcess> {
  context.after(() => clock.close());
  const broker = await BrokerProcess.launch({ flags: [...HEARTBEAT_FLAGS, ...flags], env: clock.env });
  context.after(() => broker.isRunning && broker.kill());
  return broker;
}

/** A stream whose events are soon too old, and one that is soon unused for too long. */
async function shortLived(port: number): Promise<{ untilGone(): Promise<void> }> {
  const [aging, unused] = [freshStream('aging'), freshStream('unused')];
  await createStream(port, aging, { retention: { ageMs: SHORT_MS } });
  await createStream(port, unused, { ttlMs: SHORT_MS });
  await publishLines(port, aging, LINES);
  return {
    async untilGone() {
      await untilEmpty(port, aging);
      await eventually('an unused stream to go', async () => {
        return (await request(port, { path: `/v1/streams/${unused}/state` })).status === 404;
      });
    },
  };
}

async function untilEmpty(port: number, stream: string): Promise<void> {
  await eventually('events to be too old', async () => {
    const { floor, logFloor, head } = await stateOf(port, stream);
    return (logFloor ?? floor) > head;
  });
}

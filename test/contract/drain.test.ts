import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { eventually } from '../support/deadline.js';
import { assertProblem, freshStream, publish, publishLines } from '../support/gapless-client.js';
import { HttpConnection, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

const CLEAN_EXIT = { code: 0, signal: null };

for (const threads of ['1', '3']) {
  describe(`10 SIGTERM, with --threads ${threads}`, () => {
    let broker: BrokerProcess | undefined;

    async function start(drainMs: number): Promise<BrokerProcess> {
      broker = await BrokerProcess.start('--threads', threads, '--drain-ms', String(drainMs));
      return broker;
    }

    afterEach(async () => {
      if (broker?.isRunning) await broker.kill();
    });

    it('10 without subscriptions the broker ends with exit code 0', async () => {
      const idle = await start(5_000);
      await publish(idle.port, freshStream('idle'), 'one');
      assert.deepEqual(await idle.stop(), CLEAN_EXIT);
      assert.equal(idle.stderr, '');
    });

    it('10 open subscriptions get a `retry:` with jitter and a proper last chunk; then exit code 0', async () => {
      const draining = await start(1_000);
      const stream = freshStream('drained');
      const subscriptions = await Promise.all(
        range(1, 60).map(() => SseSubscription.open(draining.port, stream, { cursor: 'earliest' })),
      );
      await publishLines(draining.port, stream, range(1, 500).map(String));
      await Promise.all(subscriptions.map((subscription) => subscription.untilEvents(500)));
      const retriesBefore = subscriptions.map(({ retries }) => retries.length);
      draining.signal('SIGTERM');
      for (const [index, subscription] of subscriptions.entries()) {
        assert.equal(await subscription.untilEnded(), 'end');
        assert.deepEqual(subscription.seqs, range(1, 500));
        assert.ok(subscription.retries.length > (retriesBefore[index] ?? 0), 'no retry: at the end');
      }
      const last = subscriptions.map(({ retries }) => retries.at(-1));
      assert.ok(new Set(last).size >= 10, 'the retry at the end has no jitter');
      assert.deepEqual(await draining.untilExit(), CLEAN_EXIT);
      assert.deepEqual(draining.errors, []);
    });

    it('10 while it drains it is not ready and takes no new subscription, but is alive', async () => {
      const draining = await start(20_000);
      const stream = freshStream('draining');
      const open = await Promise.all(range(1, 200).map(() => SseSubscription.open(draining.port, stream)));
      draining.signal('SIGTERM');
      await eventually('/readyz to say 503', async () => {
        return (await request(draining.port, { path: '/readyz' })).status === 503;
      });
      assert.equal((await request(draining.port, { path: '/healthz' })).status, 200);
      for (const _attempt of range(1, 12)) {
        const refused = await SseSubscription.ask(draining.port, stream);
        assertProblem(await refused.refusal(), 503, 'draining');
      }
      // The rest of the drain is of no interest: a second signal ends it.
      draining.signal('SIGTERM');
      await draining.untilExit();
      await Promise.all(open.map((subscription) => subscription.untilEnded()));
    });

    it('10 a publisher that goes on while it drains leaves no hole in what the subscriptions get before their end', async () => {
      const draining = await start(1_500);
      const stream = freshStream('late');
      const publisher = await HttpConnection.open(draining.port);
      const subscriptions = await Promise.all(
        range(1, 40).map(() => SseSubscription.open(draining.port, stream)),
      );
      await Promise.all(subscriptions.map((subscription) => subscription.untilPrimed()));
      draining.signal('SIGTERM');
      let acked = 0;
      try {
        while (draining.isRunning) acked = (await publish(publisher, stream, `event ${acked + 1}`)).last;
      } catch {
        // Refused or cut off, at some point: what was acknowledged before is what counts.
      }
      for (const subscription of subscriptions) {
        assert.equal(await subscription.untilEnded(), 'end');
        assert.deepEqual(subscription.seqs, range(1, subscription.eventCount));
      }
      assert.deepEqual(await draining.untilExit(), CLEAN_EXIT);
    });

    it('10 a second SIGTERM ends it at once, with exit code 1', async () => {
      const draining = await start(600_000);
      const stream = freshStream('second');
      const subscriptions = await Promise.all(
        range(1, 50).map(() => SseSubscription.open(draining.port, stream)),
      );
      draining.signal('SIGTERM');
      await eventually('/readyz to say 503', async () => {
        return (await request(draining.port, { path: '/readyz' })).status === 503;
      });
      draining.signal('SIGTERM');
      assert.deepEqual(await draining.untilExit(), { code: 1, signal: null });
      await Promise.all(subscriptions.map((subscription) => subscription.untilEnded()));
    });

    it('10 a stalled subscription does not keep it from ending', async () => {
      const draining = await start(300);
      const stream = freshStream('stalled');
      const stalled = await SseSubscription.open(draining.port, stream);
      await stalled.untilPrimed();
      stalled.stall();
      const publisher = await HttpConnection.open(draining.port);
      for (const _batch of range(1, 60)) {
        await publishLines(
          publisher,
          stream,
          range(1, 4).map(() => 'x'.repeat(60_000)),
        );
      }
      publisher.destroy();
      assert.deepEqual(await draining.stop(), CLEAN_EXIT);
      stalled.cut();
    });

    it('3 after the end and a new start no cursor of before is taken for one of now (I3)', async () => {
      const first = await start(100);
      const stream = freshStream('restarted');
      const before = await publishLines(first.port, stream, ['one', 'two', 'three']);
      assert.deepEqual(await first.stop(), CLEAN_EXIT);
      const second = await first.startAgain();
      broker = second;
      const lastEventId = `${before.epoch}.2`;
      const absent = await SseSubscription.ask(second.port, stream, { lastEventId });
      assert.equal(assertProblem(await absent.refusal(), 410, 'resume_unavailable').reason, 'epoch_changed');
      const after = await publishLines(second.port, stream, ['four', 'five', 'six']);
      assert.notEqual(after.epoch, before.epoch);
      const changed = await SseSubscription.ask(second.port, stream, { lastEventId });
      assert.equal(assertProblem(await changed.refusal(), 410, 'resume_unavailable').reason, 'epoch_changed');
    });
  });
}

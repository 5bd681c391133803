import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { PRODUCER } from '#gapless/core/producer-record.js';
import { LogCounter } from '#gapless/ring/log-status.js';
import { eventually } from '../support/deadline.js';
import type { SharedMedium } from '../support/memory-replicated-log.js';
import { ReplicaStage, settle, twoBrokers } from './replica-stage.js';

describe('events that a shared log has lost', () => {
  let medium: SharedMedium;
  let a: ReplicaStage;
  let b: ReplicaStage;

  beforeEach(async () => {
    ({ medium, a, b } = await twoBrokers());
    for (let seq = 1; seq <= 20; seq++) {
      await a.publish('s', [`event ${seq}`], { claim: claim(seq - 1) });
    }
  });

  const claim = (seq: number) => ({ kind: PRODUCER, digest: 'd'.repeat(32), epoch: 0, seq }) as const;
  const dataOf = (first: number, last: number): string[] =>
    Array.from({ length: last - first + 1 }, (_, index) => `event ${first + index}`);
  const lose = (first: number, last: number): void => {
    medium.entries = medium.entries.filter(({ entry }) => entry.head < first || entry.head > last);
  };
  const miss = (broker: ReplicaStage, seq: number): void => {
    const stream = broker.replica.find('s');
    assert.ok(stream !== undefined);
    broker.lost.missed(stream, seq);
  };
  const sweepLater = (broker: ReplicaStage, ms: number): void => {
    broker.nowMs += ms;
    broker.lost.sweep();
  };

  for (const [where, first, last] of [
    ['oldest', 0, 7],
    ['middle', 5, 12],
  ] as const) {
    test(`in its ${where} are said to be gone after a while, by all brokers, and what follows is there (I2, I9)`, async () => {
      const { epoch } = await a.publish('s', ['event 21']);
      lose(first, last);
      const seq = Math.max(1, first);
      miss(b, seq);
      sweepLater(b, 29_000);
      await settle();
      assert.equal(b.positions('s')?.logFloor, 1);
      sweepLater(b, 2_000);
      await eventually('the floor to move', () => a.positions('s')?.logFloor === last + 1);
      for (const broker of [a, b, await ReplicaStage.start({ medium })]) {
        assert.equal(broker.positions('s')?.logFloor, last + 1);
        assert.deepEqual(await broker.data('s', last), dataOf(last + 1, 21));
        assert.equal(broker.directory.find('s')?.epoch, epoch);
      }
      assert.equal(b.status.get(LogCounter.lostEvents), last + 1 - seq);
    });
  }

  test('are not said to be gone where they are found again', async () => {
    const { entries } = medium;
    lose(5, 12);
    miss(b, 5);
    sweepLater(b, 20_000);
    medium.entries = entries;
    sweepLater(b, 20_000);
    await settle();
    assert.equal(b.positions('s')?.logFloor, 1);
    assert.deepEqual(await b.data('s'), dataOf(1, 20));
  });

  test('are passed over to what counts, not to an append that came late (I3)', async () => {
    const late = medium.entries.find(({ entry }) => entry.head === 6);
    assert.ok(late !== undefined);
    lose(5, 12);
    // After the loss the first in the log follows one that is lost, and does not count.
    medium.entries = medium.entries.flatMap((stored) =>
      stored.entry.head === 13 ? [{ ...late, at: stored.at - 2 }, stored] : [stored],
    );
    miss(b, 5);
    sweepLater(b, 31_000);
    await eventually('the floor to move', () => b.positions('s')?.logFloor === 13);
    assert.deepEqual(await b.data('s', 12), dataOf(13, 20));
  });

  test('make no broker that starts forget who published after them (I6)', async () => {
    lose(2, 7);
    const fresh = await ReplicaStage.start({ medium });
    for (const seq of [19, 20]) {
      const again = await fresh.publish('s', [`event ${seq}`], { claim: claim(seq - 1) });
      assert.deepEqual([again.first, again.isDuplicate], [seq, true]);
    }
    const next = await fresh.publish('s', ['event 21'], { claim: claim(20) });
    assert.deepEqual([next.first, next.isDuplicate], [21, false]);
  });
});

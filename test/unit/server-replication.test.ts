import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PRODUCER } from '#gapless/core/producer-record.js';
import { RequestError } from '#gapless/errors.js';
import { LogCounter } from '#gapless/ring/log-status.js';
import { LogError } from '#gapless/storage/event-log.js';
import { eventually } from '../support/deadline.js';
import { SharedMedium } from '../support/memory-replicated-log.js';
import { seededPrng } from '../support/prng.js';
import { oneBroker, ReplicaStage, settle, twoBrokers } from './replica-stage.js';

const claim = (seq: number, epoch = 0) => ({ kind: PRODUCER, digest: 'd'.repeat(32), epoch, seq }) as const;

describe('an append of which nobody knows whether it went in', () => {
  test('is not made a second time where it did', async () => {
    const { medium, broker } = await oneBroker();
    await broker.publish('s', ['first']);
    broker.log.isDeaf = true;
    const fates = ['unanswered'] as const;
    const left = [...fates];
    broker.log.fate = () => left.shift() ?? 'answered';
    const { first } = await broker.publish('s', ['second']);
    assert.equal(first, 2);
    assert.deepEqual(await broker.data('s'), ['first', 'second']);
    assert.equal(medium.lastAt, 3, 'a creation and two appends');
  });

  test('is made again where it did not', async () => {
    const { broker } = await oneBroker();
    await broker.publish('s', ['first']);
    const left = ['lost', 'lost'] as ('lost' | 'answered')[];
    broker.log.fate = () => left.shift() ?? 'answered';
    await broker.publish('s', ['second']);
    assert.deepEqual(await broker.data('s'), ['first', 'second']);
  });

  test('is judged again where another broker was first, and a retry of its producer is still one publish', async () => {
    const { a, b } = await twoBrokers();
    await a.publish('s', ['first']);
    b.log.isDeaf = true;
    const other = await a.publish('s', ['of a'], { claim: claim(0) });
    // It knows of neither the event nor the producer: the log says so.
    const [late, retry] = await Promise.all([
      b.publish('s', ['of b']),
      b.publish('s', ['of a'], { claim: claim(0) }),
    ]);
    assert.deepEqual({ ...other, isDuplicate: true }, retry);
    assert.equal(late.first, 3);
    assert.deepEqual(await b.data('s'), ['first', 'of a', 'of b']);
    assert.deepEqual(
      [LogCounter.commits, LogCounter.committedEvents].map((of) => b.status.get(of)),
      [1, 1],
    );
  });
});

test('3.2 an append whose answer does not come in time takes a log that was back meanwhile for no failure', async () => {
  const { broker } = await oneBroker();
  for (const name of ['one', 'other']) await broker.replication.put(name, {});
  let failures = 0;
  const { open, append } = broker.log;
  broker.log.open = () => {
    failures++;
    return open.call(broker.log);
  };
  const heldBack = new Map<string, () => void>();
  broker.log.append = async (name, ...entry) => {
    const askedAtMs = performance.now();
    if (heldBack.has(name)) return append.call(broker.log, name, ...entry);
    await new Promise<void>((resolve) => heldBack.set(name, resolve));
    throw new LogError('io', 'told to be late', { askedAtMs });
  };
  const publishes = ['one', 'other'].map((name) => broker.publish(name, ['1']));
  await eventually('both to be under way', () => heldBack.size === 2);
  for (const [at, name] of ['one', 'other'].entries()) {
    heldBack.get(name)?.();
    assert.equal((await publishes[at])?.first, 1);
  }
  assert.equal(failures, 1);
});

test('4.4 a log that was replaced has every stream begin anew, once, although several brokers notice (I3)', async () => {
  const medium = new SharedMedium();
  const brokers = await Promise.all([1, 2, 3].map(() => ReplicaStage.start({ medium })));
  const [a, b, c] = brokers as [ReplicaStage, ReplicaStage, ReplicaStage];
  const before = await a.publish('s', ['seen']);
  assert.equal(b.positions('s')?.head, 1);
  medium.replace();
  await Promise.all(brokers.map(({ replication }) => replication.start()));
  const epochs = new Set(brokers.map((broker) => broker.directory.find('s')?.epoch));
  assert.equal(epochs.size, 1);
  assert.equal(epochs.has(before.epoch), false);
  await c.publish('s', ['anew']);
  assert.deepEqual(await a.data('s'), ['anew']);
  assert.equal(b.positions('s')?.head, 1);
});

test('4.4 a log that lost its newest entries has those streams begin anew, and no others (I3)', async () => {
  const { medium, broker } = await oneBroker();
  const kept = await broker.publish('kept', ['1']);
  const lost = await broker.publish('lost', ['1']);
  await broker.publish('lost', ['2']);
  medium.entries.pop();
  medium.lastAt--;
  await broker.replication.start();
  assert.equal(broker.directory.find('kept')?.epoch, kept.epoch);
  assert.notEqual(broker.directory.find('lost')?.epoch, lost.epoch);
  assert.deepEqual(broker.positions('lost')?.head, 0);
});

test('4.4 a log that lost its newest entries, and has others in their place by now, is noticed all the same (I3)', async () => {
  const { medium, broker } = await oneBroker();
  const kept = await broker.publish('kept', ['1']);
  const goneOn = await broker.publish('gone on', ['1']);
  const lost = await broker.publish('lost', ['1']);
  broker.log.isDeaf = true;
  await broker.publish('lost', ['2']);
  medium.entries.pop();
  medium.lastAt--;
  const other = await ReplicaStage.start({ medium });
  await other.publish('lost', ['another']);
  await other.publish('gone on', ['2']);
  await broker.replication.start();
  assert.equal(broker.directory.find('kept')?.epoch, kept.epoch);
  assert.equal(broker.directory.find('gone on')?.epoch, goneOn.epoch);
  assert.deepEqual(await broker.data('gone on'), ['1', '2']);
  for (const { directory } of [broker, other]) assert.notEqual(directory.find('lost')?.epoch, lost.epoch);
  assert.equal(broker.directory.find('lost')?.epoch, other.directory.find('lost')?.epoch);
});

test('4.7 a stream that is made while a broker comes back to its log is not taken for one that was removed', async () => {
  const broker = await ReplicaStage.start({ medium: new SharedMedium() });
  const follow = broker.log.follow.bind(broker.log);
  broker.log.follow = async (...asked) => {
    await broker.publish('made', ['1']);
    return follow(...asked);
  };
  const removed: string[] = [];
  const { remove } = broker.directory;
  broker.directory.remove = (name) => {
    removed.push(name);
    return remove.call(broker.directory, name);
  };
  await broker.replication.start();
  assert.deepEqual(removed, []);
  assert.deepEqual(await broker.data('made'), ['1']);
});

test('4.4 what is not where it was because it was let go is not lost', async () => {
  const { medium, broker } = await oneBroker();
  const { epoch } = await broker.publish('s', ['1']);
  const other = await ReplicaStage.start({ medium });
  broker.log.isDeaf = true;
  await other.publish('s', ['2']);
  medium.entries = medium.entries.slice(-1);
  await broker.replication.start();
  assert.equal(broker.directory.find('s')?.epoch, epoch);
  assert.equal(broker.positions('s')?.head, 2);
});

test('4.4 an entry that comes in the place of another one shows that the log has lost some (I3)', async () => {
  const { medium, broker } = await oneBroker();
  const lost = await broker.publish('s', ['1']);
  medium.entries.pop();
  medium.lastAt--;
  const other = await ReplicaStage.start({ medium });
  await other.publish('s', ['another']);
  await eventually('it to begin anew', () => broker.directory.find('s')?.epoch !== lost.epoch);
});

test('2.1 two brokers that make one stream at a time make one, and are told which configuration it has', async () => {
  const { a, b } = await twoBrokers();
  const made = await Promise.allSettled([
    a.replication.put('s', { retention: { events: 1 } }),
    b.replication.put('s', { retention: { events: 2 } }),
  ]);
  assert.deepEqual(made.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  assert.equal(a.directory.find('s')?.epoch, b.directory.find('s')?.epoch);
});

test('2.3 a publish that a deletion overtakes goes into the stream that is made anew', async () => {
  const { a, b } = await twoBrokers();
  const { epoch } = await a.publish('s', ['1']);
  b.log.isDeaf = true;
  assert.equal(await a.replication.remove('s'), true);
  const again = await b.publish('s', ['2']);
  assert.notEqual(again.epoch, epoch);
  assert.equal(again.first, 1);
  assert.deepEqual(await a.data('s'), ['2']);
});

test('2.3 of a removed stream nothing is left after a while, and who begins it anew is heard by all', async () => {
  const { medium, a, b } = await twoBrokers();
  await a.publish('s', ['1']);
  await a.publish('s', ['2']);
  await b.replication.remove('s');
  await settle();
  assert.deepEqual(
    medium.entries.map(({ entry }) => entry.state),
    ['removed'],
  );
  for (const broker of [a, b]) {
    broker.nowMs += 90_000;
    broker.retention.sweep();
  }
  await settle();
  assert.deepEqual(medium.entries, []);
  const { ref } = await b.replication.put('s', {});
  await settle();
  assert.equal(a.directory.find('s')?.epoch, ref.epoch);
});

test('3.4 who comes to a broker that has passed over many entries is known there too', async () => {
  const { a, b } = await twoBrokers();
  await a.publish('s', ['first'], { claim: claim(0) });
  b.log.isDeaf = true;
  for (let i = 0; i < 200; i++)
    await a.publish('s', [`${i}`], i % 50 === 0 ? { claim: claim(1 + i / 50) } : {});
  const retry = await b.publish('s', ['50'], { claim: claim(2) });
  assert.deepEqual([retry.first, retry.isDuplicate], [52, true]);
  assert.equal(b.positions('s')?.head, 201);
  assert.equal((await b.data('s')).length, 201);
});

test('2.1 retention moves one floor for all, and keeps the entries that tell of producers', async () => {
  const { medium, a, b } = await twoBrokers();
  await a.replication.put('s', { retention: { events: 10 } });
  const publishUpTo = async (last: number): Promise<void> => {
    for (let i = (a.positions('s')?.head ?? 0) + 1; i <= last; i++) {
      await a.publish('s', [`${i}`], i === 3 ? { claim: claim(0) } : {});
      // What it makes go goes behind it.
      for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await publishUpTo(25);
  // Twice ten, and one more, are 21: then the newest ten stay.
  assert.equal(a.positions('s')?.logFloor, 12);
  assert.equal(b.positions('s')?.logFloor, 12);
  assert.deepEqual(
    await b.data('s', 11),
    Array.from({ length: 14 }, (_, i) => `${12 + i}`),
  );
  const again = await b.publish('s', ['3'], { claim: claim(0) });
  assert.deepEqual([again.first, again.isDuplicate], [3, true]);
  const own = (): number => medium.entries.filter(({ stream }) => stream === 's').length;
  assert.ok(own() > 20, 'the entry of the producer is there, and all after it');
  // Its time is over.
  a.nowMs += 120_000;
  await publishUpTo(40);
  assert.equal(b.positions('s')?.logFloor, 23);
  assert.ok(own() < 25, `${own()} entries`);
});

for (const isExact of [true, false]) {
  const refuses = isExact ? 'refuses what does not count' : 'lets through what races';
  test(`3.1, 3.4 publishers at several brokers, with answers that are lost, on a log that ${refuses} (I1, I3, I6)`, async (context) => {
    const prng = seededPrng(context);
    let turnsMax = 4;
    const pause = async (): Promise<void> => {
      for (let turns = prng.below(turnsMax); turns > 0; turns--)
        await new Promise((resolve) => setImmediate(resolve));
    };
    const medium = new SharedMedium();
    const keeps = prng.pick([0, 30]);
    const maker = await ReplicaStage.start({ medium });
    await maker.replication.put('s', { retention: { events: keeps } });
    const brokers = await Promise.all(
      [1, 2, 3].map(async () => {
        const broker = new ReplicaStage({ medium, pause });
        broker.log.isExact = isExact;
        broker.log.fate = () =>
          prng.chance(0.9) ? 'answered' : prng.pick(['unanswered', 'lost', 'late'] as const);
        broker.log.lateBy = () => prng.between(1, prng.pick([3, 30, 100]));
        await broker.replication.start();
        return broker;
      }),
    );
    const placed = new Map<number, string>();
    const publish = async (name: string, seq: number): Promise<void> => {
      const lines = Array.from({ length: prng.between(1, 3) }, (_, index) => `${name}.${seq}.${index}`);
      const digest = name.padEnd(32, '0');
      for (;;) {
        const broker = prng.pick(brokers);
        try {
          const at = await broker.publish('s', lines, { claim: { kind: PRODUCER, digest, epoch: 0, seq } });
          assert.equal(at.last - at.first + 1, lines.length);
          for (const [index, line] of lines.entries()) {
            assert.equal(placed.get(at.first + index) ?? line, line, 'I3');
            placed.set(at.first + index, line);
          }
          return;
        } catch (error) {
          assert.ok(error instanceof RequestError, String(error));
          assert.ok(['commit_unknown', 'log_unavailable'].includes(error.code), error.code);
        }
      }
    };
    await Promise.all(
      ['a', 'b', 'c', 'd', 'e'].map(async (name) => {
        for (let seq = 0; seq < 40; seq++) {
          // Who follows misses nothing, or is told so: not all that it missed can be told from what comes next.
          if (isExact && prng.chance(0.1)) prng.pick(brokers).log.isDeaf = prng.chance(0.5);
          if (prng.chance(0.05)) await prng.pick(brokers).replication.start();
          await publish(name, seq);
        }
      }),
    );
    const expected = Array.from({ length: placed.size }, (_, index) => placed.get(index + 1));
    turnsMax = 1;
    for (const broker of brokers) {
      // It may still be on its way back from the last of these faults.
      broker.log.fate = () => 'answered';
      broker.log.isDeaf = false;
      const caughtUp = (): Promise<boolean> =>
        broker.replication.refresh('s').then(
          () => true,
          () => false,
        );
      await eventually('the broker to have caught up', caughtUp);
    }
    // What lets go of events has come to its end.
    await settle();
    for (const broker of brokers) {
      const floor = broker.positions('s')?.logFloor as number;
      assert.ok(keeps === 0 ? floor === 1 : floor > 1 && floor <= placed.size - keeps + 1, `${floor}`);
      assert.deepEqual(await broker.data('s', floor - 1), expected.slice(floor - 1));
      assert.deepEqual(await broker.data('s', floor + 17), expected.slice(floor + 17));
      assert.equal(broker.positions('s')?.head, placed.size);
    }
    const fresh = new ReplicaStage({ medium });
    fresh.log.isExact = isExact;
    await fresh.replication.start();
    // Backwards, so that none goes on where another ended.
    const floor = fresh.positions('s')?.logFloor as number;
    for (let seq = placed.size - 1; seq >= floor - 1; seq--) {
      assert.equal((await fresh.data('s', seq, 1))[0], expected[seq]);
    }
    assert.deepEqual(await fresh.data('s', floor - 1), expected.slice(floor - 1));
  });
}

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatCursor, parseCursor } from '#gapless/core/cursor.js';
import { RequestError } from '#gapless/errors.js';
import { READERS, type StoredSubscriber } from '#gapless/storage/replicated-log.js';
import { eventually } from '../support/deadline.js';
import { type AppendFate, SharedMedium } from '../support/memory-replicated-log.js';
import { type Prng, seededPrng } from '../support/prng.js';
import { ReplicaStage, settle, twoBrokers } from './replica-stage.js';

const isRefusal = (code: string) => (error: unknown) => error instanceof RequestError && error.code === code;

/** Two brokers on one log, and a stream of nine events. */
async function stage(): Promise<{ medium: SharedMedium; a: ReplicaStage; b: ReplicaStage; epoch: string }> {
  const { medium, a, b } = await twoBrokers();
  const { epoch } = await a.publish('s', ['1', '2', '3', '4', '5', '6', '7', '8', '9']);
  return { medium, a, b, epoch };
}

function ackedAt(broker: ReplicaStage, stream = 's'): Record<string, string> {
  const state = broker.directory.state(stream);
  const named = state === null ? [] : broker.named.list(state);
  return Object.fromEntries(named.map(({ name, acked }) => [name, acked]));
}

describe('named subscribers of brokers that share a log', () => {
  test('4.8, 7 what was acknowledged at one is where it begins at another', async () => {
    const { a, b, epoch } = await stage();
    const at = (seq: number) => ({ epoch, seq });
    assert.deepEqual(await a.subscribers.join('s', 'ada', 'earliest'), { start: 'earliest' });
    // It hears of nothing by itself.
    b.log.isDeaf = true;
    assert.equal(await a.subscribers.acknowledge('s', 'ada', at(4)), formatCursor(epoch, 4));
    assert.deepEqual(await b.subscribers.join('s', 'ada', null), { start: at(4) });
    assert.equal(await b.subscribers.acknowledge('s', 'ada', at(6)), formatCursor(epoch, 6));
    assert.deepEqual(ackedAt(a), { ada: formatCursor(epoch, 6) });
    assert.equal(await a.subscribers.acknowledge('s', 'ada', at(8)), formatCursor(epoch, 8));
    assert.equal(await b.subscribers.acknowledge('s', 'ada', at(7)), formatCursor(epoch, 8), 'not back');
    assert.deepEqual(await b.subscribers.join('s', 'ada', null), { start: at(8) });
  });

  test('7 one that was forgotten at one is not there at another, and comes as if for the first time', async () => {
    const { a, b, epoch } = await stage();
    await b.subscribers.join('s', 'ada', 'earliest');
    b.log.isDeaf = true;
    assert.equal(await a.subscribers.forget('s', 'ada'), true);
    assert.equal(await a.subscribers.forget('s', 'ada'), false);
    const cursor = { epoch, seq: 3 };
    await assert.rejects(b.subscribers.acknowledge('s', 'ada', cursor), isRefusal('subscriber_not_found'));
    assert.equal(await b.subscribers.forget('s', 'ada'), false);
    assert.deepEqual(await b.subscribers.join('s', 'ada', null), { start: { epoch, seq: 9 } });
    assert.deepEqual(ackedAt(a), { ada: formatCursor(epoch, 9) });
  });

  test('7 a cursor that only another broker knows the event of is no cursor ahead', async () => {
    const { a, b, epoch } = await stage();
    await b.subscribers.join('s', 'ada', null);
    b.log.isDeaf = true;
    await a.publish('s', ['10']);
    const acknowledge = (seq: number) => b.subscribers.acknowledge('s', 'ada', { epoch, seq });
    assert.equal(await acknowledge(10), formatCursor(epoch, 10));
    await assert.rejects(acknowledge(11), isRefusal('ack_ahead'));
  });

  test('7 an acknowledgement without an answer of the log is made once more, or is there', async () => {
    for (const fate of ['unanswered', 'lost'] as const) {
      const { medium, a, epoch } = await stage();
      await a.subscribers.join('s', 'ada', null);
      const { length } = medium.subscribers;
      await a.publish('s', ['10']);
      const fates: AppendFate[] = [fate];
      a.log.fate = () => fates.pop() ?? 'answered';
      const acked = await a.subscribers.acknowledge('s', 'ada', { epoch, seq: 10 });
      assert.equal(acked, formatCursor(epoch, 10));
      assert.equal(medium.subscribers.length, length + 1, fate);
      fates.push(fate);
      assert.equal(await a.subscribers.forget('s', 'ada'), true);
    }
  });

  test('2.3 they go with their stream, and from the log', async () => {
    const { medium, a, b } = await stage();
    await a.subscribers.join('s', 'ada', null);
    await b.subscribers.join('s', 'bob', null);
    await b.replication.remove('s');
    await a.publish('s', ['anew']);
    assert.deepEqual([ackedAt(a), ackedAt(b)], [{}, {}]);
    assert.deepEqual([a.named.size, b.named.size], [0, 0]);
    await b.subscribers.join('s', 'bob', null);
    await sweepLater(a);
    assert.deepEqual(new Set(medium.subscribers.map(({ subscriber }) => subscriber)), new Set(['bob']));
  });

  test('2.3 those of a stream that was removed go from the log, also what comes after that', async () => {
    const { medium, a, b, epoch } = await stage();
    await a.subscribers.join('s', 'ada', 'earliest');
    medium.putOf({ stream: 's', subscriber: READERS }, touchOf(medium), null);
    a.log.isExact = false;
    a.log.fate = () => 'late';
    a.log.lateBy = () => 3;
    void a.subscribers.acknowledge('s', 'ada', { epoch, seq: 5 }).catch(() => undefined);
    await settle();
    a.log.fate = () => 'answered';
    await b.replication.remove('s');
    medium.putAllLate();
    await sweepLater(a);
    await sweepLater(b);
    assert.deepEqual(medium.subscribers, []);
  });

  test('2.3, 4.8 what comes late of one whose stream was removed takes nothing from one of its name in the stream made anew', async () => {
    const { medium, a, b, epoch } = await stage();
    await a.subscribers.join('s', 'ada', 'earliest');
    const late = medium.subscribers.at(-1) as StoredSubscriber;
    await b.replication.remove('s');
    const { epoch: anew } = await b.publish('s', ['anew']);
    await b.subscribers.join('s', 'ada', 'earliest');
    const acked = formatCursor(epoch, 5);
    medium.putOf(late, { ...late.entry, acked, previous: late.at, writer: 'late' }, null);
    await a.replication.start();
    await sweepLater(a);
    const fresh = await ReplicaStage.start({ medium });
    for (const broker of [a, b, fresh]) assert.deepEqual(ackedAt(broker), { ada: formatCursor(anew, 0) });
  });

  test('2.3 those of a stream that was removed are not those of one that was made anew, whatever the log has of them', async () => {
    const { medium, a } = await stage();
    await a.subscribers.join('s', 'ada', null);
    const left = medium.subscribers;
    await a.replication.remove('s');
    await a.publish('s', ['anew']);
    await settle();
    // As if who removed it had died before it could say so of these.
    medium.subscribers = left;
    const fresh = await ReplicaStage.start({ medium });
    await settle();
    assert.deepEqual(ackedAt(fresh), {});
    await sweepLater(fresh);
    assert.deepEqual(medium.subscribers, []);
    await a.subscribers.join('s', 'ada', null);
    assert.equal(a.named.size, 1);
  });

  test('7 one of a stream that has gone is not there, however late its entry was read', async () => {
    const { a, b } = await stage();
    await a.subscribers.join('s', 'ada', 'earliest');
    const { subscribers } = b.log;
    const { next } = subscribers;
    subscribers.next = async (key, from) => {
      const stored = await next(key, from);
      subscribers.next = next;
      await a.replication.remove('s');
      return stored;
    };
    await b.takenUp.catchUp({ stream: 's', subscriber: 'ada' });
    assert.equal(await b.subscribers.forget('s', 'ada'), false);
  });

  test('7 what is forgotten goes from the log, and of what moves often little is kept there', async () => {
    const { medium, a, epoch } = await stage();
    await a.subscribers.join('s', 'ada', 'earliest');
    for (let i = 10; i < 100; i++) {
      await a.publish('s', [`${i}`]);
      await a.subscribers.acknowledge('s', 'ada', { epoch, seq: i });
    }
    assert.ok(medium.subscribers.length < 20, `${medium.subscribers.length} entries`);
    await a.subscribers.forget('s', 'ada');
    a.takenUp.sweep();
    assert.ok(medium.subscribers.length > 0, 'others have to hear of it');
    a.nowMs += 120_000;
    a.takenUp.sweep();
    await settle();
    assert.equal(medium.subscribers.length, 0);
    assert.ok(await a.subscribers.join('s', 'ada', null), 'it may come again');
  });

  test('4.8 the bound of all of them holds wherever they join', async () => {
    const { a, b } = await stage();
    for (let i = 0; i < 10; i++) await (i % 2 === 0 ? a : b).subscribers.join('s', `n${i}`, null);
    await assert.rejects(a.subscribers.join('s', 'one-more', null), isRefusal('too_many_subscribers'));
    assert.ok(await b.subscribers.join('s', 'n0', null));
  });

  test('1, 4.8 where the log lost all, they are told that the epoch has changed, and do not come as if they were new (I3)', async () => {
    const { medium, a, b, epoch } = await stage();
    await a.subscribers.join('s', 'ada', { epoch, seq: 5 });
    medium.replace();
    await Promise.all([a, b].map(({ replication }) => replication.start()));
    for (const broker of [a, b]) {
      assert.notEqual(broker.directory.find('s')?.epoch, epoch);
      assert.deepEqual(ackedAt(broker), { ada: formatCursor(epoch, 5) });
      assert.deepEqual(await broker.subscribers.join('s', 'ada', null), { start: { epoch, seq: 5 } });
    }
    assert.equal(medium.subscribers.length, 1);
  });

  test('1, 4.8 nor where one comes back before the broker has noticed (I3)', async () => {
    const { medium, a, b, epoch } = await stage();
    await a.subscribers.join('s', 'ada', { epoch, seq: 5 });
    medium.replace();
    const join = () => b.subscribers.join('s', 'ada', null);
    await assert.rejects(join(), isRefusal('log_unavailable'));
    const joined = await eventually('it to be let in', () => join().catch(() => false as const));
    assert.deepEqual(joined, { start: { epoch, seq: 5 } });
  });

  test('7 where the log lost the newest, what was acknowledged does not go back', async () => {
    const { medium, a, b, epoch } = await stage();
    await a.subscribers.join('s', 'ada', 'earliest');
    await a.subscribers.acknowledge('s', 'ada', { epoch, seq: 5 });
    await a.subscribers.acknowledge('s', 'ada', { epoch, seq: 8 });
    medium.subscribers.pop();
    medium.lastAt--;
    await Promise.all([a, b].map(({ replication }) => replication.start()));
    const fresh = await ReplicaStage.start({ medium });
    for (const broker of [a, b, fresh]) assert.deepEqual(ackedAt(broker), { ada: formatCursor(epoch, 8) });
  });
});

/** Says that a stream is read. */
function touchOf({ subscribers }: SharedMedium): StoredSubscriber['entry'] {
  const { entry } = subscribers[0] as StoredSubscriber;
  return { ...entry, previous: 0, previousWriter: '', writer: 'reader' };
}

/** What was forgotten goes from the log. */
async function sweepLater(broker: ReplicaStage): Promise<void> {
  broker.nowMs += 90_000;
  broker.retention.sweep();
  broker.takenUp.sweep();
  await settle();
}

/** What an acknowledgement was answered, and when. */
interface Acked {
  readonly beganAt: number;
  readonly endedAt: number;
  readonly seq: number;
}

async function acknowledgeAtRandom(prng: Prng, brokers: ReplicaStage[], name: string): Promise<Acked[]> {
  const answers: Acked[] = [];
  let time = 0;
  const clock = (): number => ++time;
  const worker = async (): Promise<void> => {
    for (let turn = 0; turn < 25; turn++) {
      const broker = prng.pick(brokers);
      const beganAt = clock();
      try {
        const epoch = brokers[0]?.directory.find('s')?.epoch as string;
        if (prng.chance(0.2)) {
          const joined = await broker.subscribers.join('s', name, null);
          const seq = (joined?.start as { seq: number }).seq;
          answers.push({ beganAt, endedAt: clock(), seq });
          continue;
        }
        const acked = await broker.subscribers.acknowledge('s', name, { epoch, seq: prng.below(50) });
        answers.push({ beganAt, endedAt: clock(), seq: parseCursor(acked as string)?.seq as number });
      } catch (error) {
        assert.ok(error instanceof RequestError, String(error));
        assert.ok(['log_unavailable', 'commit_unknown'].includes(error.code), error.code);
      }
    }
  };
  await Promise.all([1, 2, 3].map(worker));
  return answers;
}

for (const isExact of [true, false]) {
  const refuses = isExact ? 'refuses what does not count' : 'lets through what races';
  test(`7 acknowledgements at several brokers never go back, on a log that ${refuses}`, async (context) => {
    const prng = seededPrng(context);
    const pause = async (): Promise<void> => {
      for (let turns = prng.below(4); turns > 0; turns--)
        await new Promise((resolve) => setImmediate(resolve));
    };
    const medium = new SharedMedium();
    const brokers = await Promise.all(
      [1, 2, 3].map(async () => {
        const broker = new ReplicaStage({ medium, pause });
        broker.log.isExact = isExact;
        await broker.replication.start();
        return broker;
      }),
    );
    const [first] = brokers as [ReplicaStage];
    const lines = Array.from({ length: 50 }, (_, index) => `${index}`);
    await first.publish('s', lines);
    const names = ['ada', 'bob', 'eve'];
    for (const name of names) await first.subscribers.join('s', name, 'earliest');
    for (const { log } of brokers) {
      log.fate = () => (prng.chance(0.9) ? 'answered' : prng.pick(['unanswered', 'lost', 'late'] as const));
      log.lateBy = () => prng.between(1, prng.pick([3, 30]));
    }
    const restarts = (async () => {
      for (let i = 0; i < 10; i++) {
        await pause();
        const broker = prng.pick(brokers);
        if (isExact) broker.log.isDeaf = prng.chance(0.5);
        await broker.replication.start();
      }
    })();
    const all = await Promise.all(names.map((name) => acknowledgeAtRandom(prng, brokers, name)));
    await restarts;
    const fresh = new ReplicaStage({ medium });
    fresh.log.isExact = isExact;
    await fresh.replication.start();
    for (const [index, answers] of all.entries()) {
      for (const later of answers) {
        const before = answers.filter(({ endedAt }) => endedAt < later.beganAt);
        const most = Math.max(0, ...before.map(({ seq }) => seq));
        assert.ok(later.seq >= most, `${names[index]} went back from ${most} to ${later.seq}`);
      }
      const most = Math.max(...answers.map(({ seq }) => seq));
      const acked = parseCursor(ackedAt(fresh)[names[index] as string] as string)?.seq ?? -1;
      assert.ok(acked >= most, `${names[index]} was at ${most} and is at ${acked}`);
    }
    assert.ok(medium.subscribers.length < 3 * 40, `${medium.subscribers.length} entries`);
  });
}

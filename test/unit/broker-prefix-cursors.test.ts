import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { StreamRef } from '#gapless/broker/edge-stream.js';
import { type Follow, type Followed, type Holder, PrefixCursors } from '#gapless/broker/prefix-cursors.js';
import { FULL_GRANT } from '#gapless/core/grant.js';
import { SentHistory } from '#gapless/core/sent-history.js';

const KEEP_MS = 1000;

/** The coordinator's side alone; what it tells the edges is written down. */
function open(names: string[] = [], limits: { cursorsMax?: number; streamsMax?: number } = {}) {
  const told: string[] = [];
  const released: Holder[] = [];
  const clock = { nowMs: 0 };
  const cursors = new PrefixCursors({
    streams: (prefix) => names.filter((name) => name.startsWith(prefix)).map(refOf),
    cursorsMax: limits.cursorsMax ?? 10,
    streamsMax: limits.streamsMax ?? 10,
    keepMs: KEEP_MS,
    tellMade: (edge, { name }) => told.push(`${edge} ${name}`),
    release: (holder) => released.push(holder),
    now: () => clock.nowMs,
    randomBytes,
  });
  return { cursors, told, released, clock };
}

const refOf = (name: string): StreamRef => ({ name }) as StreamRef;
const sent = (count: number) => ({ histories: [SentHistory.begin(count, new Map()).data] });
const asking = (edge: number, id: number, more: Partial<Follow> = {}): Follow => ({
  ...{ edge, id, prefix: 'a', owner: 'ada', grant: FULL_GRANT, token: null },
  ...more,
});

async function followed(answer: ReturnType<PrefixCursors['follow']>): Promise<Followed> {
  const value = await answer;
  assert.ok(typeof value === 'object');
  return value;
}

test('4.11 of several who ask for one cursor each has it after the one before has stopped, the newest in the end', async () => {
  const { cursors, released } = open();
  const { token } = await followed(cursors.follow(asking(0, 1)));
  const order: number[] = [];
  const waiting = [2, 3, 4].map(async (id) => {
    const { cursor } = await followed(cursors.follow(asking(id, id, { token })));
    order.push(id);
    assert.equal(cursor?.histories[0]?.count, id - 1);
  });
  for (const id of [1, 2, 3]) {
    while (!released.some((holder) => holder.id === id)) await new Promise(setImmediate);
    cursors.handBack({ edge: id === 1 ? 0 : id, id, token, cursor: sent(id) });
  }
  await Promise.all(waiting);
  assert.deepEqual(order, [2, 3, 4]);
  assert.deepEqual([cursors.size, cursors.open], [1, 1]);
});

test('4.11 a cursor is of its owner and its prefix, and goes when its time is over', async () => {
  const { cursors, clock, released } = open();
  const [first, second] = [
    await followed(cursors.follow(asking(0, 1))),
    await followed(cursors.follow(asking(0, 2))),
  ];
  for (const more of [{ owner: 'bob' }, { owner: '' }, { prefix: '' }, { prefix: 'ab' }]) {
    assert.equal(await cursors.follow(asking(1, 1, { token: first.token, ...more })), 'unknown');
  }
  assert.deepEqual(released, []);
  cursors.handBack({ edge: 0, id: 2, token: second.token, cursor: sent(1) });
  clock.nowMs = 500;
  cursors.handBack({ edge: 0, id: 1, token: first.token, cursor: sent(1) });
  clock.nowMs = KEEP_MS;
  cursors.sweep();
  assert.equal(await cursors.follow(asking(0, 3, { token: second.token })), 'unknown');
  const back = await followed(cursors.follow(asking(0, 4, { token: first.token })));
  clock.nowMs = 10 * KEEP_MS;
  cursors.sweep();
  assert.equal(cursors.size, 1, 'one that is open has no time');
  cursors.handBack({ edge: 0, id: 4, token: back.token, cursor: null });
  assert.equal(cursors.size, 0, 'of nothing there is nothing to keep');
});

test('4.11 an edge is told once of each stream that somebody follows there, and of no other', async () => {
  const { cursors, told } = open(['a1', 'b1', '~mcp:x']);
  const first = await followed(cursors.follow(asking(0, 1, { prefix: '' })));
  assert.equal(first.refs.length, 3);
  await followed(cursors.follow(asking(0, 2, { prefix: 'a' })));
  const { token } = await followed(cursors.follow(asking(2, 1, { prefix: 'ab' })));
  for (const name of ['a2', 'abc', 'b2', '~mcp:y']) cursors.made(refOf(name));
  assert.deepEqual(told.splice(0), ['0 a2', '0 abc', '2 abc', '0 b2']);
  cursors.handBack({ edge: 2, id: 1, token, cursor: sent(1) });
  cursors.made(refOf('abd'));
  assert.deepEqual(told, ['0 abd']);
});

test('4.11 too many streams, of those that may be read, take nothing away', async () => {
  const { cursors } = open(['a1', 'a2', 'a3'], { streamsMax: 2 });
  assert.equal(await cursors.follow(asking(0, 1)), 'too_many_streams');
  assert.deepEqual([cursors.size, cursors.open], [0, 0]);
  const grant = { ...FULL_GRANT, subscribe: ['a1', 'a3'] };
  const { refs } = await followed(cursors.follow(asking(0, 2, { grant })));
  assert.deepEqual(
    refs.map(({ name }) => name),
    ['a1', 'a3'],
  );
});

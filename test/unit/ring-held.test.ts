import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { APPEND_HELD, APPEND_TOO_LARGE, APPENDED } from '#gapless/ring/append.js';
import { holdFrom, trimBelow } from '#gapless/ring/lifecycle.js';
import { RingStage, texts } from './ring-stage.js';

test('3.6 what is held stays, up to twice the limit, and then publishers wait until it is let go', () => {
  const stage = new RingStage(2 ** 20);
  const stream = stage.open({ events: 5 });
  holdFrom(stage.rings, stream, 1);
  for (let i = 1; i <= 10; i++) stage.append(stream, `${i}`);
  assert.equal(stage.tryAppend(stream, 'one more'), APPEND_HELD);
  assert.deepEqual([stage.positions(stream).floor, stage.positions(stream).head], [1, 10]);
  holdFrom(stage.rings, stream, 4);
  for (let i = 11; i <= 13; i++) stage.append(stream, `${i}`);
  assert.equal(stage.tryAppend(stream, 'one more'), APPEND_HELD);
  assert.equal(stage.positions(stream).floor, 4);
  holdFrom(stage.rings, stream, Number.POSITIVE_INFINITY);
  stage.append(stream, ...texts('more', 3));
  assert.equal(stage.positions(stream).floor, 12);
});

test('3.6 a batch that is more than can ever be held is too large, and no reason to wait', () => {
  const stage = new RingStage(2 ** 20);
  const stream = stage.open({ events: 5, bytes: 2000 });
  holdFrom(stage.rings, stream, 1);
  assert.equal(stage.tryAppend(stream, ...texts('t', 11)), APPEND_TOO_LARGE);
  assert.equal(stage.tryAppend(stream, 'x'.repeat(4000)), APPEND_TOO_LARGE);
  assert.equal(stage.tryAppend(stream, ...texts('t', 10)), APPENDED);
});

test('3.6 memory that is full of what is held has publishers wait too, and age lets it go', () => {
  const stage = new RingStage(9 * 1024);
  const stream = stage.open({ dataBytesMax: 8192 });
  holdFrom(stage.rings, stream, 1);
  const text = 'x'.repeat(1000);
  while (stage.tryAppend(stream, text) === APPENDED);
  const { floor, head } = stage.positions(stream);
  assert.deepEqual(
    [floor, stage.tryAppend(stream, text), stage.positions(stream).head],
    [1, APPEND_HELD, head],
  );
  assert.equal(head, 3, 'the ring of 4 KiB could not double');
  trimBelow(stage.rings, stream, 4);
  holdFrom(stage.rings, stream, Number.POSITIVE_INFINITY);
  stage.append(stream, text);
});

test('3.6 whatever is appended and let go, nothing that is held is evicted, and what fits is taken (I5)', () => {
  const step = fc.oneof(
    fc.record({ append: fc.integer({ min: 1, max: 6 }), bytes: fc.nat(300) }),
    fc.record({ hold: fc.nat(12) }),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(0, 3, 7),
      fc.constantFrom(0, 900),
      fc.array(step, { maxLength: 60 }),
      (events, bytes, steps) => {
        const stage = new RingStage(2 ** 20);
        const stream = stage.open({ events, bytes, dataBytesMax: 16_384 });
        let held = 1;
        holdFrom(stage.rings, stream, held);
        for (const each of steps) {
          const { head } = stage.positions(stream);
          if ('hold' in each) {
            held = Math.max(held, Math.min(head + 1, held + each.hold));
            holdFrom(stage.rings, stream, held);
            continue;
          }
          const outcome = stage.tryAppend(stream, ...texts('e', each.append, each.bytes));
          const after = stage.positions(stream);
          assert.ok(after.floor <= held, `held from ${held}, and the floor is ${after.floor}`);
          assert.equal(after.head, outcome === APPENDED ? head + each.append : head);
          // Without a limit by bytes it is only the count that can have it wait, the ring being large enough.
          if (bytes === 0 && each.append * (each.bytes + 50) + (head - held + 1) * 350 < 16_384) {
            const isFull = events > 0 && head - held + 1 + each.append > 2 * events;
            const isEver = events === 0 || each.append <= 2 * events;
            assert.equal(outcome, isFull ? (isEver ? APPEND_HELD : APPEND_TOO_LARGE) : APPENDED);
          }
        }
      },
    ),
  );
});

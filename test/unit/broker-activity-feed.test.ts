import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ActivityFeed } from '#gapless/broker/activity-feed.js';
import type { Happening } from '#gapless/wire/happening.js';

const EPOCH = 'feedfeed00';
const KEPT_MAX = 1000;

function happenings(count: number): Happening[] {
  return Array.from({ length: count }, (_, index) => ({
    at: index,
    outcome: 'live',
    stream: 's',
    principal: '',
  }));
}

describe('what happened lately', () => {
  it('is given to who reads on once each, in order, and what is not there is counted', () => {
    const batch = fc.record({
      count: fc.nat(300),
      missed: fc.nat(50),
      limit: fc.integer({ min: 1, max: 400 }),
    });
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 30 }), (batches) => {
        const feed = new ActivityFeed(EPOCH);
        let cursor = { epoch: EPOCH, seq: 0 };
        let given = 0;
        let missed = 0;
        let total = 0;
        const read = (limit: number) => {
          const page = feed.after(cursor, limit);
          const numbers = page.happenings.map(({ number }) => number);
          assert.ok(numbers.length <= limit);
          assert.ok(numbers.every((number, index) => number > (numbers[index - 1] ?? cursor.seq)));
          given += numbers.length;
          missed += page.missed as number;
          cursor = { epoch: EPOCH, seq: page.last };
        };
        for (const { count, missed: lost, limit } of batches) {
          feed.add({ happenings: happenings(count), missed: lost });
          total += count + lost;
          read(limit);
        }
        for (let i = 0; cursor.seq < total; i++) {
          assert.ok(i <= KEPT_MAX, 'reading on ends');
          read(100);
        }
        assert.equal(given + missed, total);
      }),
    );
  });

  it('is kept up to a thousand, and no more', () => {
    const feed = new ActivityFeed(EPOCH);
    for (let i = 0; i < 50; i++) feed.add({ happenings: happenings(100), missed: 0 });
    const page = feed.after(null, 5000);
    assert.equal(page.happenings.length, KEPT_MAX);
    assert.deepEqual([page.happenings[0]?.number, page.last, page.missed], [4001, 5000, 0]);
    assert.equal(feed.after({ epoch: EPOCH, seq: 10 }, 5000).missed, 3990);
  });

  it('has begun anew when the cursor is of another process, or of what has not happened: nobody knows what was missed', () => {
    const feed = new ActivityFeed(EPOCH);
    feed.add({ happenings: happenings(3), missed: 0 });
    for (const cursor of [
      { epoch: 'otherother', seq: 2 },
      { epoch: EPOCH, seq: 4 },
    ]) {
      const page = feed.after(cursor, 10);
      assert.deepEqual([page.happenings.length, page.last, page.missed], [3, 3, null]);
    }
  });
});

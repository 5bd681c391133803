import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { byteSize, counted, duration, retentionInWords } from '#gapless/console/page/format.js';
import { wordsOf } from '#gapless/console/page/happening-words.js';
import { marksOf, percentOf, spanOfKept, spanOfReaders, ticksOf } from '#gapless/console/page/scale.js';
import type { Happening } from '#gapless/wire/happening.js';

const seq = fc.nat(10_000_000);

describe('the bar of a stream', () => {
  it('has every seq between its edges, in order, whatever is kept', () => {
    fc.assert(
      fc.property(seq, fc.nat(1_000_000), fc.array(seq, { maxLength: 30 }), (floor, kept, seqs) => {
        const head = floor + kept;
        for (const span of [spanOfKept(floor + 1, head), spanOfReaders(seqs, floor + 1, head)]) {
          assert.ok(span.from < span.to && span.from >= 0);
          assert.ok(span.to >= head);
          const percents = seqs.toSorted((a, b) => a - b).map((at) => percentOf(at, span));
          assert.ok(percents.every((percent) => percent >= 0 && percent <= 100));
          assert.deepEqual(
            percents.toSorted((a, b) => a - b),
            percents,
          );
        }
      }),
    );
  });

  it('zoomed to its readers shows the slowest of them and the head', () => {
    const span = spanOfReaders([900_000, 999_990], 1, 1_000_000);
    assert.equal(span.to, 1_000_000);
    assert.ok(span.from < 900_000 && span.from > 800_000);
  });

  it('shows each reader in one mark, and no two marks cover each other', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000), { maxLength: 200 }), (seqs) => {
        const marks = marksOf(seqs, (at) => at, { from: 0, to: 1000 });
        assert.deepEqual(
          marks.flatMap(({ readers }) => readers),
          seqs.toSorted((a, b) => a - b),
        );
        for (const [index, { percent }] of marks.entries()) {
          if (index > 0) assert.ok(percent - (marks[index - 1]?.percent ?? 0) >= 1);
        }
        assert.ok(marks.length <= 100);
      }),
    );
  });

  it('has a handful of round ticks', () => {
    fc.assert(
      fc.property(seq, fc.integer({ min: 10, max: 10_000_000 }), (from, length) => {
        const ticks = ticksOf({ from, to: from + length });
        assert.ok(ticks.length >= 1 && ticks.length <= 7, ticks.join());
        assert.ok(ticks.every((tick) => tick >= from && tick <= from + length && Number.isInteger(tick)));
      }),
    );
  });
});

describe('what happened, in words', () => {
  const happening = (members: Partial<Happening>): Happening => ({
    at: 0,
    outcome: 'refused',
    stream: 's',
    principal: '',
    ...members,
  });
  const cases: readonly [Partial<Happening>, string][] = [
    [{ outcome: 'live', cursor: 'abcdefgh01.5', head: 5 }, 'nothing was missed'],
    [{ outcome: 'ring', cursor: 'abcdefgh01.2', head: 5 }, '3 events from memory'],
    [{ outcome: 'log', cursor: 'abcdefgh01.4', head: 5 }, '1 event from the durable log'],
    [
      { code: 'resume_unavailable', reason: 'evicted', cursor: 'abcdefgh01.3', floor: 17 },
      'event 4 is gone, the earliest kept is 17',
    ],
    [
      { code: 'resume_unavailable', reason: 'ahead_of_head', cursor: 'abcdefgh01.9', head: 7 },
      'it asked after event 9, and the newest is 7',
    ],
    [{ code: 'resume_unavailable', reason: 'epoch_changed', epoch: null }, 'there is no such stream'],
    [{ code: 'malformed', reason: 'malformed', cursor: 'x' }, 'what it sent is not a cursor'],
    [{ code: 'unauthorized', reason: 'malformed' }, 'what was sent is not a token'],
    [{ code: 'event_too_large' }, 'the event is too large'],
    [{ code: 'a_code_of_the_future' }, 'a_code_of_the_future'],
  ];
  for (const [members, text] of cases) {
    it(`says that ${text}`, () => assert.equal(wordsOf(happening(members)).text, text));
  }
});

describe('numbers, in words', () => {
  it('have units that people read', () => {
    assert.deepEqual([1, 1024, 1536, 300 * 1024, 2 ** 30].map(byteSize), [
      '1 byte',
      '1 KiB',
      '1.5 KiB',
      '300 KiB',
      '1 GiB',
    ]);
    assert.deepEqual([1500, 90_000, 7_200_000, 172_800_000].map(duration), [
      '1.5 s',
      '1.5 min',
      '2 h',
      '2 days',
    ]);
    assert.deepEqual([counted(1, 'event'), counted(1200, 'event')], ['1 event', '1,200 events']);
    assert.equal(retentionInWords({ events: 5, ageMs: 60_000 }), 'the newest 5 events, or 1 min');
    assert.equal(retentionInWords({}), 'no limit of its own');
  });
});

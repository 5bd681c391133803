import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Observation } from '#gapless/conformance/observation.js';
import { GapChecker } from './gap-checker.js';
import {
  acked,
  asked,
  begun,
  caughtUp,
  connected,
  EPOCH,
  ended,
  event,
  positions,
  refused,
  rulesOf,
  settled,
  withdrawn,
} from './journal.js';

const CLEAN: Record<string, Observation[]> = {
  'an unbroken reader': [connected('c1', 0), event('c1', 1), event('c1', 2)],
  'a resume right after the last event': [
    connected('c1', 0),
    event('c1', 1),
    connected('c2', 1),
    event('c2', 2),
  ],
  'a resume below the last event, which repeats it': [
    connected('c1', 0),
    event('c1', 1),
    event('c1', 2),
    connected('c2', 1),
    event('c2', 2),
    event('c2', 3),
  ],
  'a true refusal, then a start elsewhere': [
    connected('c1', 0),
    event('c1', 1),
    refused('c2', 1, 5, 9),
    connected('c3', 9),
    event('c3', 10),
  ],
  'a refusal on an open connection that then ends': [
    connected('c1', 0),
    event('c1', 1),
    refused('c1', 1, 5, 9),
  ],
  'a filtered reader that skips other types': [
    connected('c1', 0, { filtered: true }),
    event('c1', 2),
    { kind: 'advanced', connection: 'c1', epoch: EPOCH, seq: 5 },
    event('c1', 6),
  ],
  'an event seen before its publish was answered': [
    begun('p1', 'content 1'),
    connected('c1', 0),
    event('c1', 1),
    acked('p1', 1),
  ],
  'concurrent publishes in any order': [
    begun('p1', 'a'),
    begun('p2', 'b'),
    acked('p2', 1),
    acked('p1', 2),
    begun('p3', 'c', 'd'),
    acked('p3', 3, 4),
  ],
  'a reader that joins anew further on': [
    connected('c1', 0),
    event('c1', 1),
    connected('c2', 9, { joined: true }),
    event('c2', 10),
  ],
  'a reader that goes on where its refusal ends': [
    connected('c1', 0),
    event('c1', 1),
    refused('c1', 1, 5, 9),
    connected('c2', 9),
    event('c2', 10),
  ],
  'a filtered reader that is given all it wanted': [
    { ...begun('p1', 'a', 'b', 'c'), types: ['tick', 'tock', 'tick'] } as Observation,
    acked('p1', 1, 3),
    connected('c1', 0, { types: ['tick'] }),
    event('c1', 1, 'a'),
    event('c1', 3, 'c'),
    caughtUp('c1'),
  ],
  'a closed stream, whose end is told again to one that comes back': [
    connected('c1', 0),
    event('c1', 1),
    ended('c1', 1),
    connected('c2', 1),
    ended('c2', 1),
  ],
  'a deleted stream, made anew': [
    connected('c1', 0),
    event('c1', 1),
    ended('c1', 1, 'deleted'),
    connected('c2', 0, { epoch: 'epochbbbb' }),
    event('c2', 1, 'new', 'epochbbbb'),
  ],
  'a refused publish that is nowhere': [
    begun('p1', 'a'),
    begun('p2', 'b'),
    withdrawn('p1'),
    acked('p2', 1),
    connected('c1', 0),
    event('c1', 1, 'b'),
    settled(),
  ],
  'unanswered publishes, one whole and one absent': [
    begun('p1', 'a', 'b'),
    begun('p2', 'c'),
    connected('c1', 0),
    event('c1', 1, 'a'),
    event('c1', 2, 'b'),
    settled(),
  ],
  'answers that know what was known when they were asked for, and not what came after': [
    begun('p1', 'content 1'),
    asked('gauge'),
    acked('p1', 1),
    positions(1, 0),
    asked('c1'),
    connected('c1', 0, { floor: 1, head: 1 }),
    event('c1', 1),
    asked('c2'),
    refused('c2', 3, 1, 1, { reason: 'ahead_of_head', reader: 'ben' }),
  ],
  'positions that rise, and another epoch that begins below them': [
    positions(1, 0),
    positions(1, 7),
    positions(8, 7),
    { ...positions(1, 2), epoch: 'epochbbbb' } as Observation,
  ],
};

describe('the gap checker', () => {
  for (const [name, journal] of Object.entries(CLEAN)) {
    it(`passes ${name}`, () => {
      assert.deepEqual(rulesOf(journal), []);
    });
  }

  it('names stream, epoch, seq and connection of what it finds', () => {
    const checker = new GapChecker();
    for (const observation of [connected('c1', 0), event('c1', 1), event('c1', 3)])
      checker.observe(observation);
    assert.throws(() => checker.assertClean(), /G1 expected 2 \(s epochaaaa\.3, c1\)/);
  });

  it('keeps a bounded number of violations and counts them all', () => {
    const checker = new GapChecker();
    checker.observe(connected('c1', 0));
    for (let seq = 2; seq <= 2_000; seq += 2) checker.observe(event('c1', seq));
    assert.equal(checker.violationCount, 1_000);
    assert.ok(checker.violations.length < 100);
  });
});

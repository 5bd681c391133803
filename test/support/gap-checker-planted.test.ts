import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Rule } from '#gapless/conformance/event-history.js';
import type { Observation } from '#gapless/conformance/observation.js';
import {
  acked,
  asked,
  begun,
  caughtUp,
  connected,
  ended,
  event,
  positions,
  refused,
  rulesOf,
  settled,
  withdrawn,
} from './journal.js';

/** One violation each: the judge must find it, and nothing else. */
const PLANTED: [name: string, rule: Rule, journal: Observation[]][] = [
  ['a hole in the middle of a connection', 'G1', [connected('c1', 0), event('c1', 1), event('c1', 3)]],
  [
    'the slow consumer of the field: resumed at 118, carried on at 124',
    'G2',
    [connected('c1', 117), event('c1', 118), connected('c2', 118), event('c2', 124)],
  ],
  [
    'a reader whose cursor moved on while it was away',
    'G1',
    [connected('c1', 0), event('c1', 1), connected('c2', 4)],
  ],
  [
    'a reader that goes on above what its refusal named',
    'G1',
    [connected('c1', 0), event('c1', 1), refused('c2', 1, 5, 9), connected('c3', 11)],
  ],
  ['an end that comes too soon', 'G1', [connected('c1', 0), event('c1', 1), ended('c1', 2)]],
  [
    'a deletion that names more than was written',
    'G1',
    [connected('c1', 0), event('c1', 1), ended('c1', 2, 'deleted')],
  ],
  [
    'a filtered reader that is not given what it wanted',
    'G1',
    [
      { ...begun('p1', 'a', 'b'), types: ['tick', 'tick'] } as Observation,
      acked('p1', 1, 2),
      connected('c1', 0, { types: ['tick'] }),
      event('c1', 2, 'b'),
      caughtUp('c1'),
    ],
  ],
  [
    'an event after the end',
    'G2',
    [connected('c1', 0), event('c1', 1), ended('c1', 1, 'deleted'), event('c1', 2)],
  ],
  ['a resume that begins with the cursor itself', 'G2', [connected('c1', 7), event('c1', 7)]],
  ['an event after the refusal', 'G2', [connected('c1', 1), refused('c1', 1, 5, 9), event('c1', 2)]],
  ['a refusal of what could be read', 'G2', [refused('c1', 4, 5, 9)]],
  ['a refusal of the head itself', 'G2', [refused('c1', 9, 5, 9)]],
  ['a refusal with a false reason', 'G2', [refused('c1', 12, 5, 9)]],
  ['a refusal that hides a changed epoch', 'G2', [refused('c1', 1, 5, 9, { epoch: 'epochbbbb' })]],
  [
    'one seq with two contents for two readers',
    'G3',
    [connected('c1', 0), event('c1', 1, 'a'), connected('c2', 0, { reader: 'ben' }), event('c2', 1, 'b')],
  ],
  [
    'an acknowledged event that was seen as another',
    'G4',
    [begun('p1', 'a'), begun('p2', 'b'), connected('c1', 0), event('c1', 1, 'b'), acked('p1', 1)],
  ],
  ['a content nobody published', 'G4', [begun('p1', 'a'), connected('c1', 0), event('c1', 1, 'b')]],
  [
    'a content that stands twice',
    'G4',
    [begun('p1', 'a'), connected('c1', 0), event('c1', 1, 'a'), event('c1', 2, 'a')],
  ],
  ['a batch acknowledged in part', 'G4', [begun('p1', 'a', 'b'), acked('p1', 1, 1)]],
  [
    'a head below an event that was acknowledged before',
    'G4',
    [begun('p1', 'a'), acked('p1', 1), asked('gauge'), positions(1, 0)],
  ],
  [
    'a refusal that names a head below an event that was acknowledged before',
    'G4',
    [begun('p1', 'a'), acked('p1', 1), asked('c1'), refused('c1', 1, 1, 0, { reason: 'ahead_of_head' })],
  ],
  [
    'a refused publish that stands there, seen before',
    'G4',
    [begun('p1', 'a'), connected('c1', 0), event('c1', 1, 'a'), withdrawn('p1')],
  ],
  [
    'a refused publish that stands there, seen later',
    'G4',
    [begun('p1', 'a'), withdrawn('p1'), connected('c1', 0), event('c1', 1, 'a')],
  ],
  [
    'a batch in pieces',
    'G4',
    [begun('p1', 'a', 'b'), begun('p2', 'c'), connected('c1', 0), event('c1', 1, 'a'), event('c1', 2, 'c')],
  ],
  [
    'a batch that begins in its middle',
    'G4',
    [begun('p1', 'a', 'b'), begun('p2', 'c'), connected('c1', 0), event('c1', 1, 'c'), event('c1', 2, 'b')],
  ],
  [
    'a batch whose rest is missing at the end',
    'G4',
    [begun('p1', 'a', 'b'), connected('c1', 0), event('c1', 1, 'a'), settled()],
  ],
  [
    'an unanswered publish that comes after it was found to be lost',
    'G4',
    [begun('p1', 'a'), settled(), connected('c1', 0), event('c1', 1, 'a')],
  ],
  [
    'an acknowledged event that is not there when all is read',
    'G4',
    [begun('p1', 'a'), acked('p1', 1), settled()],
  ],
  [
    'a content that stands in two epochs',
    'G4',
    [
      begun('p1', 'a'),
      connected('c1', 0),
      event('c1', 1, 'a'),
      connected('c2', 0, { reader: 'ben', epoch: 'epochbbbb' }),
      event('c2', 1, 'a', 'epochbbbb'),
    ],
  ],
  [
    'a reader left behind an acknowledged event',
    'G4',
    [begun('p1', 'a'), acked('p1', 1), connected('c1', 0), { kind: 'caught-up', connection: 'c1' }],
  ],
  [
    'a later publish with a smaller seq',
    'G5',
    [begun('p1', 'a'), acked('p1', 2), begun('p2', 'b'), acked('p2', 1)],
  ],
  ['a head that goes back', 'G6', [positions(1, 5), positions(1, 4)]],
  ['a floor that goes back', 'G6', [positions(3, 5), positions(2, 5)]],
  ['a floor above head + 1', 'G6', [positions(7, 5)]],
  [
    'an event of an epoch that was not announced',
    'G6',
    [connected('c1', 0), event('c1', 1, 'a', 'epochbbbb')],
  ],
  [
    'a reader taken over into a new epoch',
    'G6',
    [connected('c1', 0), event('c1', 1), connected('c2', 0, { epoch: 'epochbbbb' })],
  ],
  [
    'a refusal that names a head below what was seen',
    'G6',
    [connected('c1', 0), event('c1', 1), refused('c2', 1, 1, 0, { reason: 'ahead_of_head' })],
  ],
  [
    'a head below an event that was seen before',
    'G6',
    [connected('c1', 0), event('c1', 1), asked('gauge'), positions(1, 0)],
  ],
  [
    'a floor that goes back from one observer to another',
    'G6',
    [positions(3, 5), asked('other'), positions(2, 5, 'other')],
  ],
  [
    'a reader accepted below the floor that others were told',
    'G6',
    [positions(3, 5), asked('c1'), connected('c1', 1)],
  ],
  [
    'a closed stream that has an event more',
    'G6',
    [
      connected('c1', 0),
      event('c1', 1),
      ended('c1', 1),
      connected('c2', 1, { reader: 'ben' }),
      event('c2', 2),
    ],
  ],
  [
    'a closed stream whose head is elsewhere',
    'G6',
    [connected('c1', 0), event('c1', 1), ended('c1', 1), positions(1, 2)],
  ],
  [
    'an end below what was acknowledged',
    'G6',
    [begun('p1', 'content 1', 'b'), acked('p1', 1, 2), connected('c1', 0), event('c1', 1), ended('c1', 1)],
  ],
  [
    'two ends of one stream',
    'G6',
    [connected('c1', 3), ended('c1', 3), connected('c2', 5, { reader: 'ben' }), ended('c2', 5)],
  ],
  ['a duplicate within a connection', 'G7', [connected('c1', 0), event('c1', 1), event('c1', 1)]],
  [
    'two events in the wrong order',
    'G7',
    [connected('c1', 0), event('c1', 1), event('c1', 2), event('c1', 1)],
  ],
  [
    'a filtered reader that is sent back',
    'G7',
    [connected('c1', 0, { filtered: true }), event('c1', 4), event('c1', 3)],
  ],
];

describe('the gap checker', () => {
  for (const [name, rule, journal] of PLANTED) {
    it(`finds ${name} (${rule})`, () => {
      assert.deepEqual(rulesOf(journal), [rule]);
    });
  }
});

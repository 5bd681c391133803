import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GapChecker, type Rule } from './gap-checker.js';
import type { Observation } from './observation.js';

const STREAM = 's';
const EPOCH = 'epochaaaa';

function connected(connection: string, after: number, more: object = {}): Observation {
  return { kind: 'connected', connection, reader: 'ada', stream: STREAM, epoch: EPOCH, after, ...more };
}

function event(connection: string, seq: number, content = `content ${seq}`, epoch = EPOCH): Observation {
  return { kind: 'event', connection, epoch, seq, content };
}

function begun(publish: string, ...contents: string[]): Observation {
  return { kind: 'publish-begun', publish, stream: STREAM, contents };
}

function acked(publish: string, first: number, last = first): Observation {
  return { kind: 'publish-acked', publish, epoch: EPOCH, first, last };
}

function positions(floor: number, head: number, observer = 'gauge'): Observation {
  return { kind: 'positions', observer, stream: STREAM, epoch: EPOCH, floor, head };
}

function refused(
  connection: string,
  seq: number,
  floor: number,
  head: number,
  more: object = {},
): Observation {
  const cursor = { epoch: EPOCH, seq };
  const base = {
    connection,
    reader: 'ada',
    stream: STREAM,
    cursor,
    reason: 'evicted',
    epoch: EPOCH,
    floor,
    head,
  };
  return { kind: 'refused', ...base, ...more };
}

function rulesOf(journal: readonly Observation[]): Rule[] {
  const checker = new GapChecker();
  for (const observation of journal) checker.observe(observation);
  assert.equal(checker.violationCount, checker.violations.length);
  return checker.violations.map((violation) => violation.rule);
}

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
  'positions that rise, and another epoch that begins below them': [
    positions(1, 0),
    positions(1, 7),
    positions(8, 7),
    { ...positions(1, 2), epoch: 'epochbbbb' } as Observation,
  ],
};

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
  ['a head below an acknowledged event', 'G4', [begun('p1', 'a'), acked('p1', 1), positions(1, 0)]],
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
  for (const [name, journal] of Object.entries(CLEAN)) {
    it(`passes ${name}`, () => {
      assert.deepEqual(rulesOf(journal), []);
    });
  }

  for (const [name, rule, journal] of PLANTED) {
    it(`finds ${name} (${rule})`, () => {
      assert.deepEqual(rulesOf(journal), [rule]);
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

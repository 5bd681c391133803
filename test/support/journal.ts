import assert from 'node:assert/strict';
import type { Rule } from '#gapless/conformance/event-history.js';
import type { Observation } from '#gapless/conformance/observation.js';
import { GapChecker } from './gap-checker.js';

/** Short forms of observations, of one stream and mostly of the reader ada, for tests of the judge. */
const STREAM = 's';
export const EPOCH = 'epochaaaa';

export function connected(connection: string, after: number, more: object = {}): Observation {
  return { kind: 'connected', connection, reader: 'ada', stream: STREAM, epoch: EPOCH, after, ...more };
}

export function event(
  connection: string,
  seq: number,
  content = `content ${seq}`,
  epoch = EPOCH,
): Observation {
  return { kind: 'event', connection, epoch, seq, content };
}

export function begun(publish: string, ...contents: string[]): Observation {
  return { kind: 'publish-begun', publish, stream: STREAM, contents };
}

export function acked(publish: string, first: number, last = first): Observation {
  return { kind: 'publish-acked', publish, epoch: EPOCH, first, last };
}

export function withdrawn(publish: string): Observation {
  return { kind: 'publish-refused', publish };
}

export function asked(by: string): Observation {
  return { kind: 'asked', by, stream: STREAM };
}

export function ended(connection: string, seq: number, reason: 'closed' | 'deleted' = 'closed'): Observation {
  return { kind: 'ended', connection, reason, last: { epoch: EPOCH, seq } };
}

export function caughtUp(connection: string): Observation {
  return { kind: 'caught-up', connection };
}

export function settled(from = 1): Observation {
  return { kind: 'settled', stream: STREAM, epoch: EPOCH, from };
}

export function positions(floor: number, head: number, observer = 'gauge'): Observation {
  return { kind: 'positions', observer, stream: STREAM, epoch: EPOCH, floor, head };
}

export function refused(
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

/** The rules that a fresh judge sees broken, in the order in which it sees it. */
export function rulesOf(journal: readonly Observation[]): Rule[] {
  const checker = new GapChecker();
  for (const observation of journal) checker.observe(observation);
  assert.equal(checker.violationCount, checker.violations.length);
  return checker.violations.map((violation) => violation.rule);
}

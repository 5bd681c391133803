import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { StreamRef } from '#gapless/broker/edge-stream.js';
import { EventIds } from '#gapless/mcp/event-id.js';
import { createFrontCounts, FrontCounts } from '#gapless/mcp/front-counts.js';
import { SessionStreams } from '#gapless/mcp/session/session-streams.js';
import { Backlog } from '#gapless/mcp/stream/backlog.js';
import type { McpStreams, Positions } from '#gapless/mcp/stream/mcp-streams.js';

const THERE = { head: 1, closed: true } as Positions;
const refTo = (name: string): StreamRef => ({ name, slot: 0, generation: 1, epoch: name }) as StreamRef;

describe('the streams of a session', () => {
  it('that are answered are forgotten once their time has taken them, and those that are read are not', () => {
    const gone = new Set<string>();
    const streams = {
      append: () => 'appended',
      positions: ({ name }) => (gone.has(name) ? null : THERE),
      touch: () => true,
      remove: ({ name }) => void gone.add(name),
    } as Partial<McpStreams> as McpStreams;
    const counts = new FrontCounts(createFrontCounts());
    const byKey = new SessionStreams({
      streams,
      backlog: new Backlog({ waitMs: 1, charactersMax: 1, counts }),
      ids: new EventIds(randomBytes(32)),
      callsMax: 3,
      identity: { session: 's', principal: '' },
      isKept: false,
      isEnded: () => false,
      answered: () => undefined,
      failed: () => undefined,
      lost: () => undefined,
      left: () => undefined,
    });
    const answered = ['a', 'b', 'c'].map((name) => {
      const stream = byKey.adopt(refTo(name), name, ['1']);
      stream.suspend();
      byKey.keepAnswered(stream);
      return stream;
    });
    const known = () => ['a', 'b', 'c'].filter((key) => byKey.get(key) !== undefined);
    byKey.keep();
    assert.deepEqual(known(), ['a', 'b', 'c']);
    gone.add('a').add('b');
    const [, second] = answered;
    assert.ok(second !== undefined);
    second.reader = 1;
    byKey.keep();
    assert.deepEqual(known(), ['b', 'c']);
    second.reader = null;
    byKey.keep();
    assert.deepEqual(known(), ['c']);
    assert.equal(byKey.isAnswered(second), false);
  });
});

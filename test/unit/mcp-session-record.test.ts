import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mergeRecords, type SessionRecord } from '#gapless/mcp/session/session-record.js';

const before: SessionRecord = {
  id: 'id',
  path: '/mcp',
  principal: '',
  revision: '2025-11-25',
  capabilities: [],
  upstream: { beginning: { body: '{}', headers: {} }, id: 'first', revision: null },
  listening: null,
  own: null,
  answered: ['1'],
};
const renewed = { ...before.upstream, id: 'second' };

describe('12.11 a record of a session that two brokers have changed', () => {
  it('has what either has answered', () => {
    const merged = mergeRecords(
      before,
      { ...before, answered: ['1', '2'] },
      { ...before, answered: ['1', '3'] },
    );
    assert.deepEqual([...merged.answered].sort(), ['1', '2', '3']);
    assert.equal(merged.upstream.id, 'first');
  });

  it('has what either has cancelled, whoever began anew', () => {
    const mine = { ...before, cancelled: ['"a"'] };
    const theirs = { ...before, cancelled: ['"b"'] };
    for (const [here, there] of [
      [mine, theirs],
      [{ ...mine, upstream: renewed }, theirs],
      [mine, { ...theirs, upstream: renewed }],
    ] as const) {
      assert.deepEqual([...(mergeRecords(before, here, there).cancelled ?? [])].sort(), ['"a"', '"b"']);
    }
  });

  it('forgets what was answered where the server began anew, whoever found that out', () => {
    const anew: SessionRecord = { ...before, upstream: renewed, answered: ['7'] };
    const old: SessionRecord = { ...before, answered: ['1', '2'] };
    for (const merged of [mergeRecords(before, anew, old), mergeRecords(before, old, anew)]) {
      assert.equal(merged.upstream.id, 'second');
      assert.deepEqual(merged.answered, ['7']);
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LogEntry } from '#gapless/storage/jetstream/log-entry.js';
import { range } from '../support/cursor.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { openLog } from '../support/replicated-brokers.js';

const ENTRY: LogEntry = {
  ...{ epoch: 'e', origin: 'e', state: 'open', count: 0, head: 0, bytes: 0, writer: 'w', claims: [] },
  config: { retention: { events: 0, bytes: 0, ageMs: 0 }, overflow: 'evict', ttlMs: 0 },
  ...{
    floor: 1,
    floorBytes: 0,
    floorAt: 0,
    floorAtMs: 0,
    previous: 0,
    previousWriter: '',
    claimsAfter: null,
    joinedAt: 0,
    atMs: 0,
  },
};

describe('a log in JetStream', { skip: NATS_SKIP }, () => {
  it('deletes what lies before a position, and nothing where nothing can (I1)', async (context) => {
    const nats = await NatsServer.start(context);
    const { log } = await openLog('own', nats.url);
    await log.open();
    for (const at of range(1, 4)) {
      assert.equal(await log.append('s', { ...ENTRY, previous: at - 1 }, new Uint8Array(), at - 1), at);
    }
    for (const [below, first] of [
      [0, 1],
      [1, 1],
      [2, 2],
      [4, 4],
    ] as const) {
      await log.dropBelow('s', below);
      assert.equal((await log.next('s', 1))?.at, first, `below ${below}`);
    }
    await log.close();
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Logger } from '#gapless/log.js';
import { commitStream, openStream } from '#gapless/ring/lifecycle.js';
import { createLogStatus, LogStatus } from '#gapless/ring/log-status.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { LogLine } from '#gapless/server/log/log-line.js';
import { answerReplay } from '#gapless/server/replay/replay-question.js';

const HEAD = 10;

/** A stream whose events are in the log only, which has none of them any more. */
function openLogged() {
  const rings = new Rings(createRings({ streamsMax: 1, memoryBytes: 2 ** 16, durable: true }));
  const config = { retention: { events: 0, bytes: 0, ageMs: 0 }, overflow: 'evict' as const, ttlMs: 0 };
  const logged = {
    id: 1,
    name: 's',
    epoch: 'epochepoch',
    config,
    floor: 1,
    head: HEAD,
    bytes: 0,
    closed: false,
    acked: new Map<string, string>(),
  };
  const handle = openStream(rings, 0, {
    ...{ epoch: logged.epoch, retention: config.retention, dataBytesMax: 4096, nowMs: 0 },
    logged,
  });
  const line = new LogLine(new LogStatus(createLogStatus()), () => undefined);
  line.adopt([{ ref: { ...handle, name: 's', config }, logged }]);
  const logger = { error: () => undefined } as unknown as Logger;
  const ask = () =>
    answerReplay(
      { stream: handle, afterSeq: 4, bytesMax: 100 },
      { rings, line, read: async () => null, logger },
    );
  return { rings, handle, ask };
}

test('what a commit has dropped is no refusal before its floor is told, which the refusal would name (I2)', async () => {
  const { rings, handle, ask } = openLogged();
  await assert.rejects(ask(), { code: 'log_unavailable' });
  commitStream(rings, handle, { seq: HEAD, logFloorSeq: 6 });
  assert.equal(await ask(), null);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLogStatus, LogStatus } from '#gapless/ring/log-status.js';
import { LogLine } from '#gapless/server/log/log-line.js';
import type { LogCommand } from '#gapless/server/log/log-messages.js';

test('a stream that is removed before its creation is committed is not known afterwards', async () => {
  const asked: LogCommand[] = [];
  const line = new LogLine(new LogStatus(createLogStatus()), (command) => asked.push(command));
  const config = { retention: { events: 0, bytes: 0, ageMs: 0 }, overflow: 'evict', ttlMs: 0 } as const;
  const ref = { name: 's', slot: 0, generation: 1, epoch: 'epochepoch', config };
  line.created(ref);
  line.removed(ref);
  for (const command of asked) {
    assert.ok('id' in command);
    line.done({ kind: 'done', id: command.id, logId: command.kind === 'create' ? 7 : null });
  }
  await nextTurn();
  assert.deepEqual([line.logIdOf(ref.epoch), line.hasCreated(ref)], [undefined, false]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_JOURNAL } from '#gapless/broker/journal.js';
import { Coordinator, type CoordinatorParts } from '#gapless/server/coordinator.js';

test('nothing is said of a stream before what was written down is committed: a crash may undo it', async () => {
  let commit: () => void = () => undefined;
  const committed = new Promise<void>((resolve) => {
    commit = resolve;
  });
  let isCommitted = false;
  const directory = {
    state: () => {
      assert.ok(isCommitted, 'looked at too early');
      return null;
    },
  };
  const journal = { ...NO_JOURNAL, settled: () => committed };
  const parts = {
    shared: null,
    directory,
    journal,
  } as unknown as CoordinatorParts;
  const answer = new Coordinator(parts).answer({
    kind: 'question',
    id: 1,
    topic: 'state',
    ask: { name: 's' },
  });
  await new Promise((resolve) => setImmediate(resolve));
  isCommitted = true;
  commit();
  assert.equal((await answer).value, null);
});

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { cursorOf, range } from '../support/cursor.js';
import { DurableBroker } from '../support/durable-broker.js';
import {
  assertProblem,
  createStream,
  deleteStream,
  freshStream,
  publishLines,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { ackedOf, acknowledge } from '../support/named-subscriber.js';
import { SseSubscription } from '../support/sse-client.js';

for (const [signal, again] of [
  ['SIGTERM', (broker: DurableBroker) => broker.restart()],
  ['SIGKILL', (broker: DurableBroker) => broker.killAndStart()],
] as const) {
  it(`7 what was acknowledged is known after ${signal}, and what was forgotten is not`, async (context) => {
    const broker = await DurableBroker.start(context);
    const { port } = broker;
    const stream = freshStream('kept');
    const gone = freshStream('gone');
    const { epoch } = await publishLines(port, stream, range(1, 9).map(String));
    await publishLines(port, gone, ['1']);
    for (const [name, of] of [
      ['ada', stream],
      ['bob', stream],
      ['eve', stream],
      ['ada', gone],
    ] as const) {
      const options = { cursor: 'earliest', query: `subscriber=${name}` };
      (await SseSubscription.open(port, of, options)).cut();
    }
    await acknowledge(port, stream, 'ada', cursorOf(epoch, 3));
    await acknowledge(port, stream, 'ada', cursorOf(epoch, 5));
    await request(port, { method: 'DELETE', path: `/v1/streams/${stream}/subscribers/eve` });
    await deleteStream(port, gone);
    await again(broker);
    assert.deepEqual(await ackedOf(port, stream), { ada: cursorOf(epoch, 5), bob: cursorOf(epoch, 0) });
    const back = await SseSubscription.open(port, stream, { query: 'subscriber=ada' });
    await back.untilEvents(4);
    assert.deepEqual(back.seqs, range(6, 9));
    back.cut();
    await createStream(port, gone);
    assert.deepEqual(await ackedOf(port, gone), {});
    await broker.end();
  });
}

it('7 after a loss of the newest commits a named subscriber is told, and does not join as if it were new (I3)', async (context) => {
  const broker = await DurableBroker.start(context, '--fsync', 'interval');
  const { port } = broker;
  const stream = freshStream('anew');
  const { epoch } = await publishLines(port, stream, range(1, 9).map(String));
  const options = { cursor: cursorOf(epoch, 4), query: 'subscriber=ada' };
  (await SseSubscription.open(port, stream, options)).cut();
  await broker.process.kill();
  // As if the mark had been set in another boot.
  writeFileSync(join(broker.directory, 'UNSYNCED'), 'another boot');
  await broker.startAgain();
  const { epoch: now } = await stateOf(port, stream);
  assert.notEqual(now, epoch);
  const back = await SseSubscription.ask(port, stream, { query: 'subscriber=ada' });
  const problem = assertProblem(await back.refusal(), 410, 'resume_unavailable');
  assert.deepEqual([problem.reason, problem.cursor], ['epoch_changed', cursorOf(epoch, 4)]);
  (await SseSubscription.open(port, stream, { cursor: 'earliest', query: 'subscriber=ada' })).cut();
  assert.deepEqual(await ackedOf(port, stream), { ada: cursorOf(now, 0) });
  await broker.end();
});

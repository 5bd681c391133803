import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { DurableBroker } from '../support/durable-broker.js';
import {
  assertProblem,
  closeStream,
  freshStream,
  publish,
  publishRequest,
  stateOf,
} from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

describe('with --fsync interval', () => {
  it('a killed process loses nothing, for the system has its pages (I3, I4)', async (context) => {
    const broker = await DurableBroker.start(context, '--fsync', 'interval');
    const stream = freshStream('killed');
    const { epoch } = await publish(broker.port, stream, 'answered');
    await broker.killAndStart();
    const state = await stateOf(broker.port, stream);
    assert.deepEqual([state.epoch, state.head], [epoch, 1]);
  });

  it('after a crash of the machine streams begin anew, and cursors of before are refused (I3)', async (context) => {
    const broker = await DurableBroker.start(context, '--fsync', 'interval');
    const [open, closed] = [freshStream('open'), freshStream('closed')];
    const before = await publish(broker.port, open, 'perhaps lost');
    await publish(broker.port, closed, 'perhaps lost');
    await closeStream(broker.port, closed);
    await broker.process.kill();
    // As if the mark had been set in another boot.
    writeFileSync(join(broker.directory, 'UNSYNCED'), 'another boot');
    await broker.startAgain();

    const state = await stateOf(broker.port, open);
    assert.notEqual(state.epoch, before.epoch);
    assert.equal(state.head, 0);
    assertProblem(await request(broker.port, publishRequest(closed, 'more')), 409, 'stream_closed');
    const back = await SseSubscription.ask(broker.port, open, { lastEventId: `${before.epoch}.1` });
    const problem = assertProblem(await back.refusal(), 410, 'resume_unavailable');
    assert.equal(problem.reason, 'epoch_changed');
  });

  it('a clean end leaves no doubt, whatever boot comes next', async (context) => {
    const broker = await DurableBroker.start(context, '--fsync', 'interval');
    const stream = freshStream('clean');
    const { epoch } = await publish(broker.port, stream, 'on the disk');
    await broker.restart();
    assert.equal((await stateOf(broker.port, stream)).epoch, epoch);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeLog } from './storage-behaviour.js';
import { describeLogProducers } from './storage-producers-behaviour.js';
import { describeLogRetention } from './storage-retention-behaviour.js';
import { after, configOf, EPOCH, memoryStage, readAll, runOf } from './storage-stage.js';

describeLog('a log in memory', () => memoryStage());
describeLogRetention('what a log in memory keeps', () => memoryStage());
describeLogProducers('whom a log in memory remembers', () => memoryStage());

describe('a log in memory that is told to misbehave', () => {
  it('fails as many commits as told, and keeps what was staged in order', async () => {
    const stage = memoryStage();
    const { log, reader } = stage;
    log.create({ id: 1, name: 'a', epoch: EPOCH, config: configOf() });
    log.append(1, runOf(1, 1, [5]), 0);
    log.failCommits(2, 'full');
    assert.throws(() => log.commit(), { name: 'LogError', fault: 'full' });
    log.append(1, runOf(1, 2, [6]), 0);
    assert.throws(() => log.commit(), { name: 'LogError', fault: 'full' });
    assert.equal(reader.read(1, after(0, 1000)), null);
    await log.commit();
    assert.deepEqual(readAll(stage, 1, 0, 1000), { lastSeq: 2, frames: runOf(1, 1, [5, 6]).frames });
  });

  it('shows nothing of a slow commit before its end, and nothing staged after it began', async () => {
    const { log, reader } = memoryStage();
    const waits: (() => void)[] = [];
    log.create({ id: 1, name: 'a', epoch: EPOCH, config: configOf() });
    log.append(1, runOf(1, 1, [5]), 0);
    log.slowCommits(() => new Promise((resolve) => waits.push(resolve)));
    const committed = log.commit();
    log.append(1, runOf(1, 2, [5]), 0);
    assert.equal(reader.read(1, after(0, 1000)), null);
    waits.shift()?.();
    await committed;
    assert.equal(reader.read(1, after(0, 1000))?.lastSeq, 1);
    log.slowCommits(null);
    await log.commit();
    assert.equal(reader.read(1, after(0, 1000))?.lastSeq, 2);
  });

  it('keeps what a slow commit that fails had, before what came meanwhile', async () => {
    const { log, reader } = memoryStage();
    log.create({ id: 1, name: 'a', epoch: EPOCH, config: configOf() });
    log.append(1, runOf(1, 1, [5]), 0);
    log.failCommits(1, 'io');
    log.slowCommits(() => Promise.resolve());
    const failing = assert.rejects(Promise.resolve(log.commit()), { name: 'LogError', fault: 'io' });
    log.append(1, runOf(1, 2, [5]), 0);
    await failing;
    await log.commit();
    assert.equal(reader.read(1, after(0, 1000))?.lastSeq, 2);
  });
});

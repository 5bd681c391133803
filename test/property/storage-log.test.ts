import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type LogStage, lmdbStage, memoryStage } from '../unit/storage-stage.js';
import { LogMachine, type Step, steps } from './storage-model.js';

async function run(stage: LogStage, taken: readonly Step[], bytesMax: number): Promise<void> {
  const machine = new LogMachine(stage);
  try {
    for (const step of taken) await machine.take(step);
    machine.compareAll(bytesMax);
    await machine.take({ do: 'reopen' });
    machine.compareAll(bytesMax);
  } finally {
    await machine.dispose();
  }
}

const readBytes = fc.integer({ min: 1000, max: 300_000 });

describe('a log and a list of events tell the same story, whatever is done to them and in whatever order', () => {
  it('in memory', async () => {
    await fc.assert(
      fc.asyncProperty(steps, readBytes, (taken, bytesMax) => run(memoryStage(), taken, bytesMax)),
      { interruptAfterTimeLimit: 10_000, numRuns: 100 },
    );
  });

  it('in LMDB, opened again at any time', async () => {
    await fc.assert(
      fc.asyncProperty(steps, readBytes, (taken, bytesMax) => run(lmdbStage(), taken, bytesMax)),
      { interruptAfterTimeLimit: 20_000, numRuns: 150 },
    );
  });
});

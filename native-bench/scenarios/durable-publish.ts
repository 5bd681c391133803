import { type BrokerSetup, DURABLE, IN_MEMORY } from '../brokers.js';
import { numberOf } from '../load-client.js';
import type { Settings } from '../settings.js';
import { runOnNewStream, type Scenario, type Target } from './scenario.js';

interface PublishOptions {
  readonly name: string;
  readonly doc: string;
  readonly setup: BrokerSetup;
  readonly target: Target | null;
  readonly batchOf: (s: Settings) => number;
}

/** Closed-loop publishers, nobody listening. A durable publish is answered when its commit is on the disk. */
function publishing({ name, doc, setup, target, batchOf }: PublishOptions): Scenario {
  return {
    name,
    doc,
    unit: 'events/s',
    target,
    async measure(bench) {
      const { settings } = bench;
      const report = await runOnNewStream(bench, setup, 'publish', {
        publishers: settings.durablePublishers,
        batch: batchOf(settings),
        'duration-ms': settings.durationMs,
      });
      return { value: numberOf(report, 'eventsPerSecond'), report };
    },
  };
}

const single = { batchOf: () => 1 };
const batches = { batchOf: (s: Settings) => s.batchEvents };

const singleInMemory = publishing({
  name: 'publish-64',
  doc: '64 closed-loop publishers of single events, in memory',
  setup: IN_MEMORY,
  target: null,
  ...single,
});

export const durablePublish = publishing({
  name: 'publish-64-durable',
  doc: 'the same with a commit on the disk before each answer',
  setup: DURABLE,
  target: { kind: 'atLeast', times: 1 / 3, of: singleInMemory },
  ...single,
});

const batchesInMemory = publishing({
  name: 'batch-64',
  doc: '64 closed-loop publishers of NDJSON batches, in memory',
  setup: IN_MEMORY,
  target: null,
  ...batches,
});

export const durableBatches = publishing({
  name: 'batch-64-durable',
  doc: 'the same with a commit on the disk before each answer',
  setup: DURABLE,
  target: { kind: 'atLeast', times: 0.6, of: batchesInMemory },
  ...batches,
});

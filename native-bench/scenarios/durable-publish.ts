import { DURABLE, IN_MEMORY } from '../brokers.js';
import type { Settings } from '../settings.js';
import { publishing } from './publishing.js';

/* A durable publish is answered when its commit is on the disk. */
const publishersOf = (s: Settings) => s.durablePublishers;
const single = { publishersOf, batchOf: () => 1 };
const batches = { publishersOf, batchOf: (s: Settings) => s.batchEvents };

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

import { IN_MEMORY } from '../brokers.js';
import type { Settings } from '../settings.js';
import { publishing } from './publishing.js';

const inMemory = { setup: IN_MEMORY, publishersOf: (s: Settings) => s.publishers };

export const publish = publishing({
  ...inMemory,
  name: 'publish',
  doc: '32 closed-loop publishers, nobody listening',
  target: null,
  batchOf: () => 1,
});

export const publishLines = publishing({
  ...inMemory,
  name: 'publish-ndjson',
  doc: 'the same with batches as NDJSON',
  target: { kind: 'atLeast', times: 10, of: publish },
  batchOf: (s) => s.batchEvents,
});

export const publishMsgpack = publishing({
  ...inMemory,
  name: 'publish-msgpack',
  doc: 'the same as MessagePack',
  target: { kind: 'atLeast', times: 10, of: publish },
  batchOf: (s) => s.batchEvents,
  msgpack: true,
});

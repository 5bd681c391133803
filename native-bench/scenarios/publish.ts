import { IN_MEMORY, WITH_TOKENS } from '../brokers.js';
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

export const publishAsProducer = publishing({
  ...inMemory,
  name: 'publish-producer',
  doc: 'single events, each publisher a producer that counts them',
  target: { kind: 'atLeast', times: 0.8, of: publish },
  batchOf: () => 1,
  producer: true,
});

export const publishWithToken = publishing({
  ...inMemory,
  setup: WITH_TOKENS,
  name: 'publish-token',
  doc: 'single events, each request with a token (HS256)',
  target: { kind: 'atLeast', times: 0.8, of: publish },
  batchOf: () => 1,
});

import { IN_MEMORY } from '../brokers.js';
import { numberOf } from '../load-client.js';
import type { Settings } from '../settings.js';
import { runOnNewStream, type Scenario, type Target } from './scenario.js';

interface PublishOptions {
  readonly name: string;
  readonly doc: string;
  readonly target: Target | null;
  readonly batchOf: (s: Settings) => number;
  readonly msgpack?: boolean;
}

/** What accepting events costs when nobody listens. */
function publishing({ name, doc, target, batchOf, msgpack = false }: PublishOptions): Scenario {
  return {
    name,
    doc,
    unit: 'events/s',
    target,
    async measure(bench) {
      const { settings } = bench;
      const report = await runOnNewStream(bench, IN_MEMORY, 'publish', {
        publishers: settings.publishers,
        batch: batchOf(settings),
        msgpack: Number(msgpack),
        'duration-ms': settings.durationMs,
      });
      return { value: numberOf(report, 'eventsPerSecond'), report };
    },
  };
}

export const publish = publishing({
  name: 'publish',
  doc: '32 closed-loop publishers, nobody listening',
  target: null,
  batchOf: () => 1,
});

export const publishLines = publishing({
  name: 'publish-ndjson',
  doc: 'the same with batches as NDJSON',
  target: { kind: 'atLeast', times: 10, of: publish },
  batchOf: (s) => s.batchEvents,
});

export const publishMsgpack = publishing({
  name: 'publish-msgpack',
  doc: 'the same as MessagePack',
  target: { kind: 'atLeast', times: 10, of: publish },
  batchOf: (s) => s.batchEvents,
  msgpack: true,
});

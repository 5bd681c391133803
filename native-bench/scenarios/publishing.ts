import type { BrokerSetup } from '../brokers.js';
import { numberOf } from '../load-client.js';
import type { Settings } from '../settings.js';
import { runOnNewStream, type Scenario, type Target } from './scenario.js';

export interface PublishingOptions {
  readonly name: string;
  readonly doc: string;
  readonly setup: BrokerSetup;
  readonly target: Target | null;
  readonly publishersOf: (s: Settings) => number;
  readonly batchOf: (s: Settings) => number;
  readonly msgpack?: boolean;
  /** Whether each publisher counts its requests, so that none could be taken twice. */
  readonly producer?: boolean;
}

/** Closed-loop publishers, nobody listening: what accepting events costs. */
export function publishing(options: PublishingOptions): Scenario {
  const { name, doc, setup, target, publishersOf, batchOf, msgpack = false, producer = false } = options;
  return {
    name,
    doc,
    unit: 'events/s',
    target,
    async measure(bench) {
      const { settings } = bench;
      const report = await runOnNewStream(bench, setup, 'publish', {
        publishers: publishersOf(settings),
        batch: batchOf(settings),
        msgpack: Number(msgpack),
        producer: Number(producer),
        'duration-ms': settings.durationMs,
      });
      return { value: numberOf(report, 'eventsPerSecond'), report };
    },
  };
}

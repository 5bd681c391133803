import { type BrokerSetup, DURABLE_LARGE_RING, DURABLE_SMALL_RING } from '../brokers.js';
import { numberOf } from '../load-client.js';
import { runOnNewStream, type Scenario, type Target } from './scenario.js';

/** Events a publish of what is replayed: how it came into the log is not what is measured. */
const PREPARED_BATCH = 500;

/** Everybody comes back once, far behind, to a stream that nobody has read yet. */
function replay(options: { name: string; doc: string; setup: BrokerSetup; target: Target | null }): Scenario {
  const { name, doc, setup, target } = options;
  return {
    name,
    doc,
    unit: 'deliveries/s',
    target,
    async measure(bench) {
      const { replaySubscribers, replayEvents } = bench.settings;
      const report = await runOnNewStream(bench, setup, 'storm', {
        subscribers: replaySubscribers,
        events: replayEvents,
        batch: PREPARED_BATCH,
      });
      return { value: numberOf(report, 'deliveriesPerSecond'), report };
    },
  };
}

const replayFromRing = replay({
  name: 'replay-ring',
  doc: 'all resume at once, far behind, out of memory',
  setup: DURABLE_LARGE_RING,
  target: null,
});

export const replayFromLog = replay({
  name: 'replay-log',
  doc: 'the same out of the durable log',
  setup: DURABLE_SMALL_RING,
  target: { kind: 'atLeast', times: 0.5, of: replayFromRing },
});

import { IN_MEMORY } from '../brokers.js';
import { numberOf } from '../load-client.js';
import { runOnNewStream, type Scenario } from './scenario.js';
import { baseline } from './send.js';

/** A reconnect storm: everybody comes back at once, equally far behind, and gets all of it. */
export const storm: Scenario = {
  name: 'storm',
  doc: 'all reconnect at once, equally far behind',
  unit: 'deliveries/s',
  target: { kind: 'atLeast', times: 50, of: baseline },
  async measure(bench) {
    const { settings } = bench;
    const report = await runOnNewStream(bench, IN_MEMORY, 'storm', {
      subscribers: settings.subscribers,
      events: settings.stormEvents,
      times: settings.stormTimes,
    });
    return { value: numberOf(report, 'deliveriesPerSecond'), report };
  },
};

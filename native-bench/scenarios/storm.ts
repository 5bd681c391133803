import { numberOf } from '../load-client.js';
import { runOnNewStream, type Scenario } from './scenario.js';

/** A reconnect storm: everybody comes back at once, equally far behind, and gets all of it. */
export const storm: Scenario = {
  name: 'storm',
  doc: 'all reconnect at once, equally far behind',
  unit: 'deliveries/s',
  target: { kind: 'baselines', atLeast: 80 },
  async measure(bench) {
    const { settings, broker } = bench;
    const report = await runOnNewStream(bench, broker, 'storm', {
      subscribers: settings.subscribers,
      events: settings.stormEvents,
      times: settings.stormTimes,
    });
    return { value: numberOf(report, 'deliveriesPerSecond'), report };
  },
};

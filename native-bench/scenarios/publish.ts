import { IN_MEMORY } from '../brokers.js';
import { numberOf } from '../load-client.js';
import { runOnNewStream, type Scenario } from './scenario.js';

/** What accepting an event costs when nobody listens. */
export const publish: Scenario = {
  name: 'publish',
  doc: '32 closed-loop publishers, nobody listening',
  unit: 'publishes/s',
  target: null,
  async measure(bench) {
    const { settings } = bench;
    const report = await runOnNewStream(bench, IN_MEMORY, 'publish', {
      publishers: settings.publishers,
      'duration-ms': settings.durationMs,
    });
    return { value: numberOf(report, 'publishesPerSecond'), report };
  },
};

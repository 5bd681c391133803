import { numberOf } from '../load-client.js';
import { runOnNewStream, type Scenario } from './scenario.js';

/** What accepting an event costs when nobody listens. */
export const publish: Scenario = {
  name: 'publish',
  doc: '32 closed-loop publishers, nobody listening',
  unit: 'publishes/s',
  target: null,
  async measure(bench) {
    const { settings, broker } = bench;
    const report = await runOnNewStream(bench, broker, 'publish', {
      publishers: settings.publishers,
      'duration-ms': settings.durationMs,
    });
    return { value: numberOf(report, 'publishesPerSecond'), report };
  },
};

import { IN_MEMORY } from '../brokers.js';
import { numberOf } from '../load-client.js';
import type { Settings } from '../settings.js';
import { runOnNewStream, type Scenario } from './scenario.js';
import { baseline } from './send.js';

/** Live delivery: every publisher waits for its answer, every subscriber gets every event. */
function fanOut(name: string, doc: string, atLeast: number, publishersOf: (s: Settings) => number): Scenario {
  return {
    name,
    doc,
    unit: 'deliveries/s',
    target: { kind: 'atLeast', times: atLeast, of: baseline },
    async measure(bench) {
      const { settings } = bench;
      const report = await runOnNewStream(bench, IN_MEMORY, 'fanout', {
        subscribers: settings.subscribers,
        publishers: publishersOf(settings),
        'duration-ms': settings.durationMs,
      });
      return { value: numberOf(report, 'deliveriesPerSecond'), report };
    },
  };
}

/** No two events can go out together: a system call per event and subscriber, and what the broker adds. */
export const fanOutFromOne = fanOut('fan-out-1', 'one closed-loop publisher', 0.7, () => 1);

/** Events meet on the way, and batching shows. */
export const fanOutFromMany = fanOut('fan-out-32', '32 closed-loop publishers', 15, (s) => s.publishers);

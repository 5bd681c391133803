import { SHORT_LIVED } from '../brokers.js';
import { numberOf, runLoad } from '../load-client.js';
import type { Settings } from '../settings.js';
import { newStreamName, type Scenario, serverOptions, type Target } from './scenario.js';

/** Fewer than streams, so that no two publishes under way are to one: each delivery is a write of its own. */
const PUBLISHERS = 8;

/** Streams with a subscriber each, published to in turn: a delivery for each publish, however many there are. */
function manyStreams(options: {
  name: string;
  doc: string;
  target: Target | null;
  streamsOf: (s: Settings) => number;
}): Scenario {
  const { name, doc, target, streamsOf } = options;
  return {
    name,
    doc,
    unit: 'deliveries/s',
    target,
    async measure(bench) {
      const { settings } = bench;
      const broker = await bench.brokers.shared(SHORT_LIVED);
      const report = await runLoad('fanout', {
        ...serverOptions(bench, broker),
        stream: newStreamName(),
        streams: streamsOf(settings),
        subscribers: streamsOf(settings),
        publishers: PUBLISHERS,
        'duration-ms': settings.durationMs,
      });
      return { value: numberOf(report, 'deliveriesPerSecond'), report };
    },
  };
}

const fewStreams = manyStreams({
  name: 'streams-10',
  doc: '10 streams with a subscriber each, 8 closed-loop publishers',
  target: null,
  streamsOf: () => 10,
});

export const streamsByThousands = manyStreams({
  name: 'streams-10000',
  doc: 'the same with 10 000 streams',
  target: { kind: 'atLeast', times: 0.9, of: fewStreams },
  streamsOf: (s) => s.manyStreams,
});

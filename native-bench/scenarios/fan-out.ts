import { type BrokerSetup, FOUR_EDGES, IN_MEMORY, TWO_EDGES } from '../brokers.js';
import { numberOf } from '../load-client.js';
import type { Settings } from '../settings.js';
import { runOnNewStream, type Scenario, type Target } from './scenario.js';
import { baseline } from './send.js';

interface FanOutOptions {
  readonly name: string;
  readonly doc: string;
  readonly target: Target | null;
  readonly publishersOf: (s: Settings) => number;
  readonly subscribersOf?: (s: Settings) => number;
  readonly slowOf?: (s: Settings) => number;
  readonly setup?: BrokerSetup;
}

/** Live delivery: every publisher waits for its answer, every subscriber gets every event. */
function fanOut(options: FanOutOptions): Scenario {
  const { name, doc, target, publishersOf, setup = IN_MEMORY } = options;
  const { subscribersOf = (s) => s.subscribers, slowOf = () => 0 } = options;
  return {
    name,
    doc,
    unit: 'deliveries/s',
    target,
    async measure(bench) {
      const { settings } = bench;
      const report = await runOnNewStream(bench, setup, 'fanout', {
        subscribers: subscribersOf(settings),
        slow: slowOf(settings),
        publishers: publishersOf(settings),
        'duration-ms': settings.durationMs,
      });
      return { value: numberOf(report, 'deliveriesPerSecond'), report };
    },
  };
}

/** One event at a time comes in; those that come while others are written to go out together. */
export const fanOutFromOne = fanOut({
  name: 'fan-out-1',
  doc: 'one closed-loop publisher',
  target: { kind: 'atLeast', times: 0.9, of: baseline },
  publishersOf: () => 1,
});

/** Events meet on the way, and batching shows. */
export const fanOutFromMany = fanOut({
  name: 'fan-out-32',
  doc: '32 closed-loop publishers',
  target: { kind: 'atLeast', times: 15, of: baseline },
  publishersOf: (s) => s.publishers,
});

/** What the others get must not suffer (I10); the slow ones are not counted. */
export const fanOutBesideSlow = fanOut({
  name: 'fan-out-slow',
  doc: 'the same beside subscribers who read slowly',
  target: { kind: 'atLeast', times: 0.9, of: fanOutFromMany },
  publishersOf: (s) => s.publishers,
  slowOf: (s) => s.slowSubscribers,
});

/** More edges than cores cost what they cost; where each has a core of its own they should pay. */
export const fanOutFromTwoEdges = fanOut({
  name: 'fan-out-2-edges',
  doc: 'fan-out-32 with two edge threads on the same core',
  target: null,
  publishersOf: (s) => s.publishers,
  setup: TWO_EDGES,
});

export const fanOutFromFourEdges = fanOut({
  name: 'fan-out-4-edges',
  doc: 'fan-out-32 with four edge threads on the same core',
  target: null,
  publishersOf: (s) => s.publishers,
  setup: FOUR_EDGES,
});

const fanOutToFew = fanOut({
  name: 'subscribers-10',
  doc: '10 subscribers, one closed-loop publisher',
  target: null,
  publishersOf: () => 1,
  subscribersOf: () => 10,
});

/** As many deliveries a second, to a thousand times as many. */
export const fanOutToThousands = fanOut({
  name: 'subscribers-10000',
  doc: 'the same with 10 000 subscribers',
  target: { kind: 'atLeast', times: 0.9, of: fanOutToFew },
  publishersOf: () => 1,
  subscribersOf: (s) => s.manySubscribers,
});

import { type LoadMode, type LoadOptions, type LoadReport, numberOf, runLoad } from '../load-client.js';
import type { SharedLogSetup } from '../shared-logs.js';
import { durablePublish } from './durable-publish.js';
import { liveQuiet } from './live-in-storm.js';
import { type Bench, newStreamName, type Scenario, serverOptions } from './scenario.js';

/** Publishers that are free when an event is due: more than are ever waiting for the log. */
const LATENCY_PUBLISHERS = 64;

const SETUPS: readonly SharedLogSetup[] = [1, 3].flatMap((servers) =>
  [1, 2, 3].map((brokers) => ({ brokers, servers })),
);

/** The same load, on however many brokers: each has its share of it, and a stream of its own. */
function publishOn(setup: SharedLogSetup): Scenario {
  return {
    name: `publish-${nameOf(setup)}`,
    doc: `64 closed-loop publishers of single events, over ${wordsOf(setup)}`,
    unit: 'events/s',
    target: null,
    async measure(bench) {
      const { durablePublishers, durationMs } = bench.settings;
      const reports = await loadEach(bench, setup, 'publish', {
        publishers: share(durablePublishers, setup),
        'duration-ms': durationMs,
      });
      const report = {
        serverCpu: sum(reports, 'serverCpu') / reports.length,
        loadCpu: sum(reports, 'loadCpu'),
        publishLatencyP50Us: largest(reports, 'publishLatencyP50Us'),
        publishLatencyP99Us: largest(reports, 'publishLatencyP99Us'),
      };
      return { value: sum(reports, 'eventsPerSecond'), report };
    },
  };
}

/** How late events are at a fixed rate, of all brokers together; of the slowest of them. */
function latencyOn(setup: SharedLogSetup): Scenario {
  return {
    name: `latency-${nameOf(setup)}`,
    doc: `p99 from when a publish was due to its delivery, at a fixed rate, over ${wordsOf(setup)}`,
    unit: 'us',
    target: null,
    async measure(bench) {
      const { liveSubscribers, liveRate, durationMs } = bench.settings;
      const reports = await loadEach(bench, setup, 'latency', {
        subscribers: share(liveSubscribers, setup),
        publishers: LATENCY_PUBLISHERS,
        rate: share(liveRate, setup),
        'duration-ms': durationMs,
      });
      const value = largest(reports, 'deliveryP99Us');
      return { value, report: { deliveryP50Us: largest(reports, 'deliveryP50Us'), deliveryP99Us: value } };
    },
  };
}

/** Beside one broker with a log of its own. */
export const SHARED_LOG_SCENARIOS: readonly Scenario[] = [
  { ...durablePublish, target: null },
  ...SETUPS.flatMap((setup) => [publishOn(setup), latencyOn(setup)]),
  liveQuiet,
];

async function loadEach(
  bench: Bench,
  setup: SharedLogSetup,
  mode: LoadMode,
  options: LoadOptions,
): Promise<LoadReport[]> {
  const { brokers, pids } = await bench.logs.running(setup);
  return Promise.all(
    brokers.map(async (broker) => {
      const stream = newStreamName();
      const report = await runLoad(mode, {
        ...serverOptions(bench, broker),
        'server-pids': pids.join(','),
        stream,
        ...options,
      });
      await broker.deleteStream(stream);
      return report;
    }),
  );
}

function share(total: number, { brokers }: SharedLogSetup): number {
  return Math.max(1, Math.round(total / brokers));
}

function nameOf({ brokers, servers }: SharedLogSetup): string {
  return `${brokers}-on-${servers}`;
}

function wordsOf({ brokers, servers }: SharedLogSetup): string {
  return `${brokers} brokers on a log of ${servers} NATS servers`;
}

function sum(reports: readonly LoadReport[], field: string): number {
  return reports.reduce((total, report) => total + numberOf(report, field), 0);
}

function largest(reports: readonly LoadReport[], field: string): number {
  return Math.max(...reports.map((report) => numberOf(report, field)));
}

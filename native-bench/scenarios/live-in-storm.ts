import { DURABLE_SMALL_RING } from '../brokers.js';
import { holdLoad, LoadError, type LoadReport, numberOf } from '../load-client.js';
import { type Bench, newStreamName, runOnNewStream, type Scenario, serverOptions } from './scenario.js';

/** Publishers that are free when an event is due: more than are ever waiting for their commit. */
const PUBLISHERS = 64;
const PREPARED_BATCH = 500;

/** How late live events are with nothing else to do. */
const liveQuiet: Scenario = {
  name: 'live-quiet',
  doc: 'p99 from when a publish was due to its delivery, at a fixed rate, durable',
  unit: 'us',
  target: null,
  async measure(bench) {
    return liveSample(await measureLive(bench));
  },
};

/** How late they are while many others, far behind, read another stream of the same broker out of the log. */
export const liveInStorm: Scenario = {
  name: 'live-in-storm',
  doc: 'the same during a storm of resumes that are served from the log',
  unit: 'us',
  target: { kind: 'atMost', times: 2, of: liveQuiet },
  async measure(bench) {
    const { surgeSubscribers, surgeEvents } = bench.settings;
    const broker = await bench.brokers.shared(DURABLE_SMALL_RING);
    const stream = newStreamName();
    const surge = await holdLoad('surge', {
      ...serverOptions(bench, broker),
      stream,
      subscribers: surgeSubscribers,
      events: surgeEvents,
      batch: PREPARED_BATCH,
    });
    const live = await measureLive(bench);
    const storm = await surge.release();
    if (storm === null || numberOf(storm, 'deliveries') === 0) {
      throw new LoadError('the storm delivered nothing while the others were measured');
    }
    await broker.deleteStream(stream);
    return liveSample({
      ...live,
      stormResumes: numberOf(storm, 'times'),
      stormDeliveriesPerSecond: numberOf(storm, 'deliveriesPerSecond'),
    });
  },
};

function measureLive(bench: Bench): Promise<LoadReport> {
  const { settings } = bench;
  return runOnNewStream(bench, DURABLE_SMALL_RING, 'latency', {
    subscribers: settings.liveSubscribers,
    publishers: PUBLISHERS,
    rate: settings.liveRate,
    'duration-ms': settings.durationMs,
  });
}

function liveSample(report: LoadReport): { value: number; report: LoadReport } {
  return { value: numberOf(report, 'deliveryP99Us'), report };
}

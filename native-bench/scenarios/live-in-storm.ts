import { DURABLE_SMALL_RING } from '../brokers.js';
import { LoadError, numberOf } from '../load-client.js';
import { liveDelivery, liveSample, measureLiveBeside } from './live.js';
import { newStreamName, type Scenario } from './scenario.js';

const PREPARED_BATCH = 500;

export const liveQuiet = liveDelivery({
  name: 'live-quiet',
  doc: 'p99 from when a publish was due to its delivery, at a fixed rate, durable',
  setup: DURABLE_SMALL_RING,
});

/** How late they are while many others, far behind, read another stream of the same broker out of the log. */
export const liveInStorm: Scenario = {
  name: 'live-in-storm',
  doc: 'the same during a storm of resumes that are served from the log',
  unit: 'us',
  target: { kind: 'atMost', times: 2, of: liveQuiet },
  async measure(bench) {
    const { surgeSubscribers, surgeEvents } = bench.settings;
    const stream = newStreamName();
    const { live, beside: storm } = await measureLiveBeside(bench, DURABLE_SMALL_RING, 'surge', {
      stream,
      subscribers: surgeSubscribers,
      events: surgeEvents,
      batch: PREPARED_BATCH,
    });
    if (numberOf(storm, 'deliveries') === 0) {
      throw new LoadError('the storm delivered nothing while the others were measured');
    }
    const broker = await bench.brokers.shared(DURABLE_SMALL_RING);
    await broker.deleteStream(stream);
    return liveSample({
      ...live,
      stormResumes: numberOf(storm, 'times'),
      stormDeliveriesPerSecond: numberOf(storm, 'deliveriesPerSecond'),
    });
  },
};

import { DURABLE_SMALL_RING } from '../brokers.js';
import { holdLoad, LoadError, numberOf } from '../load-client.js';
import { liveDelivery, liveSample, measureLive } from './live.js';
import { newStreamName, type Scenario, serverOptions } from './scenario.js';

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
    const broker = await bench.brokers.shared(DURABLE_SMALL_RING);
    const stream = newStreamName();
    const surge = await holdLoad('surge', {
      ...serverOptions(bench, broker),
      stream,
      subscribers: surgeSubscribers,
      events: surgeEvents,
      batch: PREPARED_BATCH,
    });
    const live = await measureLive(bench, DURABLE_SMALL_RING);
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

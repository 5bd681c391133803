import type { BrokerSetup } from '../brokers.js';
import {
  type HeldMode,
  holdLoad,
  LoadError,
  type LoadOptions,
  type LoadReport,
  numberOf,
} from '../load-client.js';
import { type Bench, runOnNewStream, type Sample, type Scenario, serverOptions } from './scenario.js';

/** Publishers that are free when an event is due: more than are ever waiting for their answer. */
const PUBLISHERS = 64;

/** How late live events are with nothing else to do. */
export function liveDelivery(options: { name: string; doc: string; setup: BrokerSetup }): Scenario {
  const { name, doc, setup } = options;
  return {
    name,
    doc,
    unit: 'us',
    target: null,
    async measure(bench) {
      return liveSample(await measureLive(bench, setup));
    },
  };
}

/** An open loop: publishes at a fixed rate, whether or not the broker keeps up. */
export function measureLive(bench: Bench, setup: BrokerSetup): Promise<LoadReport> {
  const { settings } = bench;
  return runOnNewStream(bench, setup, 'latency', {
    subscribers: settings.liveSubscribers,
    publishers: PUBLISHERS,
    rate: settings.liveRate,
    'duration-ms': settings.durationMs,
  });
}

/** The same while another load is in the server's way. @returns also what that load said when it was over. */
export async function measureLiveBeside(
  bench: Bench,
  setup: BrokerSetup,
  mode: HeldMode,
  options: LoadOptions,
): Promise<{ live: LoadReport; beside: LoadReport }> {
  const broker = await bench.brokers.shared(setup);
  const load = await holdLoad(mode, { ...serverOptions(bench, broker), ...options });
  const live = await measureLive(bench, setup);
  const beside = await load.release();
  if (beside === null) throw new LoadError(`the load of mode ${mode} ended without a report`);
  return { live, beside };
}

export function liveSample(report: LoadReport): Sample {
  return { value: numberOf(report, 'deliveryP99Us'), report };
}

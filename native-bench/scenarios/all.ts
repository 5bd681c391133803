import { durableBatches, durablePublish } from './durable-publish.js';
import {
  fanOutBesideSlow,
  fanOutFromFourEdges,
  fanOutFromMany,
  fanOutFromOne,
  fanOutFromTwoEdges,
  fanOutToThousands,
} from './fan-out.js';
import { idle } from './idle.js';
import { liveInStorm } from './live-in-storm.js';
import { streamsByThousands } from './many-streams.js';
import { publish, publishAsProducer, publishLines, publishMsgpack, publishWithToken } from './publish.js';
import { replayFromLog } from './replay.js';
import type { Bench, Scenario } from './scenario.js';
import { storm } from './storm.js';

const DURABLE: readonly Scenario[] = [durablePublish, durableBatches, replayFromLog, liveInStorm];

/** What is measured unless `--only` or `--peers` says otherwise, in this order. */
export const SCENARIOS: readonly Scenario[] = [
  fanOutFromOne,
  fanOutFromMany,
  fanOutBesideSlow,
  fanOutFromTwoEdges,
  fanOutFromFourEdges,
  storm,
  fanOutToThousands,
  streamsByThousands,
  publishLines,
  publishMsgpack,
  publishAsProducer,
  publishWithToken,
  ...DURABLE,
  idle,
];

/** What the load client in TypeScript knows; held to nothing, for there is no baseline. */
export const WITHOUT_COMPILER: readonly Scenario[] = [fanOutFromOne, fanOutFromMany, storm, publish].map(
  (scenario) => ({ ...scenario, target: null }),
);

/** The compiler inside Node is done with the hot paths before the first clock starts. */
export async function warmUp(bench: Bench, scenarios: readonly Scenario[]): Promise<void> {
  if (bench.settings.warmUpMs === 0) return;
  const settings = { ...bench.settings, durationMs: bench.settings.warmUpMs };
  const durable = scenarios.filter((scenario) => DURABLE.includes(scenario));
  const inMemory = durable.length === scenarios.length ? [] : [fanOutFromMany, storm];
  for (const scenario of [...inMemory, ...durable]) await scenario.measure({ ...bench, settings });
}

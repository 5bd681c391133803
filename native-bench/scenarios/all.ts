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
import { liveUnderAttack } from './live-under-attack.js';
import { streamsByThousands } from './many-streams.js';
import { publish, publishAsProducer, publishLines, publishMsgpack, publishWithToken } from './publish.js';
import { replayFromLog } from './replay.js';
import type { Scenario } from './scenario.js';
import { storm } from './storm.js';

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
  durablePublish,
  durableBatches,
  replayFromLog,
  liveInStorm,
  liveUnderAttack,
  idle,
];

/** What the load client in TypeScript knows; held to nothing, for there is no baseline. */
export const WITHOUT_COMPILER: readonly Scenario[] = [fanOutFromOne, fanOutFromMany, storm, publish].map(
  (scenario) => ({ ...scenario, target: null }),
);

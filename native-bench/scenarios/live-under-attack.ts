import { WITH_TOKENS } from '../brokers.js';
import { holdLoad, LoadError, numberOf } from '../load-client.js';
import { liveDelivery, liveSample, measureLive } from './live.js';
import { newStreamName, type Scenario, serverOptions } from './scenario.js';

/** Those who send forged tokens, each one at a time. */
const FORGERS = 32;

const liveWithTokens = liveDelivery({
  name: 'live-token',
  doc: 'p99 from when a publish was due to its delivery, at a fixed rate, in memory, with tokens',
  setup: WITH_TOKENS,
});

/** How late live events are while others only want to be in the way, and get nothing. */
export const liveUnderAttack: Scenario = {
  name: 'live-under-attack',
  doc: 'the same beside requests that never end, connections without a request, and forged tokens',
  unit: 'us',
  target: { kind: 'atMost', times: 3, of: liveWithTokens },
  async measure(bench) {
    const { halfOpenRequests, attackRate } = bench.settings;
    const broker = await bench.brokers.shared(WITH_TOKENS);
    const attack = await holdLoad('attack', {
      ...serverOptions(bench, broker),
      stream: newStreamName(),
      subscribers: halfOpenRequests,
      publishers: FORGERS,
      rate: attackRate,
    });
    const live = await measureLive(bench, WITH_TOKENS);
    const report = await attack.release();
    if (report === null) throw new LoadError('the attack ended without a report');
    const seconds = numberOf(report, 'seconds');
    return liveSample({
      ...live,
      attackHalfOpen: numberOf(report, 'halfOpen'),
      attackConnectsPerSecond: numberOf(report, 'connects') / seconds,
      attackRefusedTokensPerSecond: numberOf(report, 'refusedTokens') / seconds,
    });
  },
};

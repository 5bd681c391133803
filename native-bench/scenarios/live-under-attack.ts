import { WITH_TOKENS } from '../brokers.js';
import { numberOf } from '../load-client.js';
import { liveDelivery, liveSample, measureLiveBeside } from './live.js';
import { newStreamName, type Scenario } from './scenario.js';

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
    const { live, beside: attack } = await measureLiveBeside(bench, WITH_TOKENS, 'attack', {
      stream: newStreamName(),
      subscribers: halfOpenRequests,
      publishers: FORGERS,
      rate: attackRate,
    });
    const seconds = numberOf(attack, 'seconds');
    return liveSample({
      ...live,
      attackHalfOpen: numberOf(attack, 'halfOpen'),
      attackConnectsPerSecond: numberOf(attack, 'connects') / seconds,
      attackRefusedTokensPerSecond: numberOf(attack, 'refusedTokens') / seconds,
    });
  },
};

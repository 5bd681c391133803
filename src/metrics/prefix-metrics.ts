/**
 * The cursors that are kept for subscriptions by prefix.
 */

import type { Registry } from 'prom-client';
import type { PrefixCursors } from '../broker/prefix-cursors.js';
import { registerLiveValue } from './live-value.js';

export type PrefixSources = Pick<PrefixCursors, 'size' | 'open' | 'dropped' | 'takeovers'>;

export const PREFIX_METRICS: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: keyof PrefixSources;
}[] = [
  {
    name: 'gapless_prefix_cursors',
    help: 'Cursors of subscriptions by prefix, open or kept until they come back.',
    value: 'size',
  },
  {
    name: 'gapless_prefix_cursors_open',
    help: 'Those of them whose subscriptions are open.',
    value: 'open',
  },
  {
    name: 'gapless_prefix_cursors_dropped_total',
    help: 'Cursors of subscriptions by prefix given up early because there were prefixCursorsMax.',
    value: 'dropped',
  },
  {
    name: 'gapless_prefix_takeovers_total',
    help: 'Subscriptions by prefix that ended because their subscriber came back on another connection.',
    value: 'takeovers',
  },
];

export function registerPrefixMetrics(sources: PrefixSources, registry: Registry): void {
  for (const { name, help, value } of PREFIX_METRICS) {
    registerLiveValue(registry, name, help, () => sources[value]);
  }
}

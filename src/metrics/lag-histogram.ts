/**
 * The lag histograms as Prometheus sees them. They are counted in shared memory by the edges; this shows them.
 */

import { Histogram } from 'prom-client';
import { type Counters, LAG_BOUNDS, LagHistogram } from '../ring/counters.js';
import { SUBSCRIBER_LAG } from './names.js';

type Values = Omit<Awaited<ReturnType<Histogram['get']>>, 'collect' | 'type'> & {
  readonly type: 'histogram';
};

export class SubscriberLagHistogram extends Histogram<'position' | 'le'> {
  readonly #counters: readonly Counters[];

  constructor(counters: readonly Counters[]) {
    super({ ...SUBSCRIBER_LAG, labelNames: ['position'], registers: [] });
    this.#counters = counters;
  }

  /** The registry's way of asking. */
  async getForPromString(): Promise<Values> {
    const values = Object.entries(LagHistogram).flatMap(([position, index]) => this.#series(position, index));
    return { ...SUBSCRIBER_LAG, type: 'histogram', aggregator: 'sum', values };
  }

  #series(position: string, histogram: number): Values['values'] {
    const { name } = SUBSCRIBER_LAG;
    const blocks = this.#counters.map((counters) => counters.lagHistogram(histogram));
    const values: Values['values'] = [];
    let count = 0;
    for (let bucket = 0; bucket <= LAG_BOUNDS.length; bucket++) {
      count += blocks.reduce((sum, block) => sum + (block.buckets[bucket] as number), 0);
      const le = LAG_BOUNDS[bucket] ?? '+Inf';
      values.push({ metricName: `${name}_bucket`, labels: { position, le }, value: count });
    }
    const sum = blocks.reduce((total, block) => total + block.sum, 0);
    values.push({ metricName: `${name}_sum`, labels: { position }, value: sum });
    values.push({ metricName: `${name}_count`, labels: { position }, value: count });
    return values;
  }
}

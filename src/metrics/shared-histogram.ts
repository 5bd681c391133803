/**
 * A histogram that other threads count in shared memory, as Prometheus sees it.
 */

import { Histogram } from 'prom-client';

/** Observations by bucket, not cumulated, the last above all bounds; and their sum. */
export interface Observations {
  readonly labels: Readonly<Record<string, string>>;
  readonly buckets: readonly number[];
  readonly sum: number;
}

type Values = Omit<Awaited<ReturnType<Histogram['get']>>, 'collect' | 'type'> & {
  readonly type: 'histogram';
};

export class SharedHistogram extends Histogram {
  readonly #metric: { readonly name: string; readonly help: string };
  readonly #bounds: readonly number[];
  readonly #series: () => readonly Observations[];

  /** @param series what was observed so far, when a scrape asks for it. */
  constructor(
    metric: { readonly name: string; readonly help: string },
    bounds: readonly number[],
    series: () => readonly Observations[],
  ) {
    super({ ...metric, registers: [] });
    this.#metric = metric;
    this.#bounds = bounds;
    this.#series = series;
  }

  /** The registry's way of asking. */
  async getForPromString(): Promise<Values> {
    const values = this.#series().flatMap((observations) => this.#valuesOf(observations));
    return { ...this.#metric, type: 'histogram', aggregator: 'sum', values };
  }

  #valuesOf({ labels, buckets, sum }: Observations): Values['values'] {
    const { name } = this.#metric;
    const values: Values['values'] = [];
    let count = 0;
    for (const [bucket, observed] of buckets.entries()) {
      count += observed;
      const le = this.#bounds[bucket] ?? '+Inf';
      values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
    }
    values.push({ metricName: `${name}_sum`, labels, value: sum });
    values.push({ metricName: `${name}_count`, labels, value: count });
    return values;
  }
}

/** The same series of several threads, added up. */
export function addUp(
  labels: Readonly<Record<string, string>>,
  parts: readonly Omit<Observations, 'labels'>[],
): Observations {
  const buckets = parts.reduce<number[]>(
    (total, part) => part.buckets.map((observed, bucket) => observed + (total[bucket] ?? 0)),
    [],
  );
  return { labels, buckets, sum: parts.reduce((total, { sum }) => total + sum, 0) };
}

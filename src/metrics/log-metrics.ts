/**
 * What the durable log and the replay pool say of themselves. Without a data directory there are none of these.
 */

import { Gauge, Histogram, Counter as PromCounter, type Registry } from 'prom-client';
import { COMMIT_SECONDS_BOUNDS, LogCounter, type LogStatus } from '../ring/log-status.js';
import { COMMIT_SECONDS, LOG_FAULT, LOG_METRICS, REPLAY_METRICS } from './names.js';

export interface LogSources {
  readonly status: LogStatus;
  /** How the replay pool is doing. */
  readonly replay: () => Readonly<Record<keyof typeof REPLAY_METRICS, number>>;
}

export function registerLogMetrics({ status, replay }: LogSources, registry: Registry): void {
  const registers = [registry];
  for (const { name, help, counter } of LOG_METRICS) show(name, help, registers, () => status.get(counter));
  show(LOG_FAULT.name, LOG_FAULT.help, registers, () => status.fault);
  for (const [field, { name, help }] of Object.entries(REPLAY_METRICS)) {
    show(name, help, registers, () => replay()[field as keyof typeof REPLAY_METRICS]);
  }
  registry.registerMetric(new CommitSecondsHistogram(status));
}

function show(name: string, help: string, registers: Registry[], value: () => number): void {
  const Kind = name.endsWith('_total') ? PromCounter : Gauge;
  new Kind({
    name,
    help,
    registers,
    collect() {
      this.reset();
      this.inc(value());
    },
  });
}

type Values = Omit<Awaited<ReturnType<Histogram['get']>>, 'collect' | 'type'> & {
  readonly type: 'histogram';
};

/** Counted in shared memory by the log thread; this shows it. */
class CommitSecondsHistogram extends Histogram {
  readonly #status: LogStatus;

  constructor(status: LogStatus) {
    super({ ...COMMIT_SECONDS, registers: [] });
    this.#status = status;
  }

  /** The registry's way of asking. */
  async getForPromString(): Promise<Values> {
    const { name } = COMMIT_SECONDS;
    const values: Values['values'] = [];
    let count = 0;
    for (let bucket = 0; bucket <= COMMIT_SECONDS_BOUNDS.length; bucket++) {
      count += this.#status.get(LogCounter.commitSecondsBuckets + bucket);
      const le = COMMIT_SECONDS_BOUNDS[bucket] ?? '+Inf';
      values.push({ metricName: `${name}_bucket`, labels: { le }, value: count });
    }
    values.push({
      metricName: `${name}_sum`,
      labels: {},
      value: this.#status.get(LogCounter.commitSecondsSum),
    });
    values.push({ metricName: `${name}_count`, labels: {}, value: count });
    return { ...COMMIT_SECONDS, type: 'histogram', aggregator: 'sum', values };
  }
}

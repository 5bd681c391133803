/**
 * What the durable log and the replay pool say of themselves. Without a data directory there are none of these.
 */

import { Gauge, Counter as PromCounter, type Registry } from 'prom-client';
import { COMMIT_SECONDS_BOUNDS, type LogStatus } from '../ring/log-status.js';
import { COMMIT_SECONDS, LOG_DISK_FREE, LOG_FAULT, LOG_METRICS, REPLAY_METRICS } from './names.js';
import { SharedHistogram } from './shared-histogram.js';

export interface LogSources {
  readonly status: LogStatus;
  /** What the medium has left; null: the log is on disks of other machines. */
  readonly diskFreeBytes: (() => number) | null;
  /** How the replay pool is doing. */
  readonly replay: () => Readonly<Record<keyof typeof REPLAY_METRICS, number>>;
}

export function registerLogMetrics({ status, diskFreeBytes, replay }: LogSources, registry: Registry): void {
  const registers = [registry];
  for (const { name, help, counter } of LOG_METRICS) show(name, help, registers, () => status.get(counter));
  show(LOG_FAULT.name, LOG_FAULT.help, registers, () => status.fault);
  if (diskFreeBytes !== null) show(LOG_DISK_FREE.name, LOG_DISK_FREE.help, registers, diskFreeBytes);
  for (const [field, { name, help }] of Object.entries(REPLAY_METRICS)) {
    show(name, help, registers, () => replay()[field as keyof typeof REPLAY_METRICS]);
  }
  const commits = () => [{ labels: {}, ...status.observedCommits() }];
  registry.registerMetric(new SharedHistogram(COMMIT_SECONDS, COMMIT_SECONDS_BOUNDS, commits));
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

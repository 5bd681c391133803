/**
 * What the durable log and the replay pool say of themselves. Without a durable log there are none of these.
 */

import type { Registry } from 'prom-client';
import { COMMIT_SECONDS_BOUNDS, type LogStatus } from '../ring/log-status.js';
import { registerLiveValue } from './live-value.js';
import { COMMIT_SECONDS, LOG_DISK_FREE, LOG_FAULT, LOG_METRICS, REPLAY_METRICS } from './log-names.js';
import { SharedHistogram } from './shared-histogram.js';

export interface LogSources {
  readonly status: LogStatus;
  /** What the medium has left; null: the log is on disks of other machines. */
  readonly diskFreeBytes: (() => number) | null;
  /** How the replay pool is doing. */
  readonly replay: () => Readonly<Record<keyof typeof REPLAY_METRICS, number>>;
}

export function registerLogMetrics({ status, diskFreeBytes, replay }: LogSources, registry: Registry): void {
  const show = (name: string, help: string, value: () => number): void =>
    registerLiveValue(registry, name, help, value);
  for (const { name, help, counter } of LOG_METRICS) show(name, help, () => status.get(counter));
  show(LOG_FAULT.name, LOG_FAULT.help, () => status.fault);
  if (diskFreeBytes !== null) show(LOG_DISK_FREE.name, LOG_DISK_FREE.help, diskFreeBytes);
  for (const [field, { name, help }] of Object.entries(REPLAY_METRICS)) {
    show(name, help, () => replay()[field as keyof typeof REPLAY_METRICS]);
  }
  const commits = () => [{ labels: {}, ...status.observedCommits() }];
  registry.registerMetric(new SharedHistogram(COMMIT_SECONDS, COMMIT_SECONDS_BOUNDS, commits));
}

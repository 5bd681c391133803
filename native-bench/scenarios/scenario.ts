import type { BrokerProcess } from '../broker-process.js';
import type { BrokerSetup, Brokers } from '../brokers.js';
import type { Cores } from '../cores.js';
import { type LoadMode, type LoadOptions, type LoadReport, runLoad } from '../load-client.js';
import type { RunningPeers } from '../peers/running-peers.js';
import type { Settings } from '../settings.js';
import type { SharedLogs } from '../shared-logs.js';

/** What a result is held to: a multiple of what another scenario measures beside it, or an amount of its own unit. */
export type Target =
  | { readonly kind: 'atLeast' | 'atMost'; readonly times: number; readonly of: Scenario }
  | { readonly kind: 'amount'; readonly atMost: number };

/** One measurement. */
export interface Sample {
  readonly value: number;
  /** Everything that the load client said. */
  readonly report: LoadReport;
}

/** Something to measure, once a round. */
export interface Scenario {
  readonly name: string;
  /** One line for people: what happens. */
  readonly doc: string;
  readonly unit: string;
  /** Null: measured for the record. */
  readonly target: Target | null;
  /** Which server it is and what all of them are put through, where several are measured side by side. */
  readonly beside?: { readonly server: string; readonly load: string };
  /** Rejects, without a number, if the load client's verification fails. */
  measure(bench: Bench): Promise<Sample>;
}

/** What the scenarios of one bench share. */
export interface Bench {
  readonly settings: Settings;
  readonly cores: Cores | null;
  readonly brokers: Brokers;
  readonly peers: RunningPeers;
  readonly logs: SharedLogs;
}

let streamsMade = 0;

/** Runs the load client on a stream that nobody has used before and that is gone afterwards. */
export async function runOnNewStream(
  bench: Bench,
  setup: BrokerSetup,
  mode: LoadMode,
  options: LoadOptions,
): Promise<LoadReport> {
  const broker = await bench.brokers.shared(setup);
  const stream = newStreamName();
  const report = await runLoad(mode, { ...serverOptions(bench, broker), stream, ...options });
  await broker.deleteStream(stream);
  return report;
}

export function newStreamName(): string {
  return `bench-${++streamsMade}`;
}

export function serverOptions(bench: Bench, broker: BrokerProcess): LoadOptions {
  return {
    port: broker.port,
    'server-pids': broker.pid,
    cpu: bench.cores?.load,
    'event-bytes': bench.settings.eventBytes,
    header: broker.authorization ?? undefined,
  };
}

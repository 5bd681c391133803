import type { Environment } from './environment.js';
import type { Measured } from './rounds.js';
import type { Sample, Target } from './scenarios/scenario.js';
import type { Settings } from './settings.js';
import { type Spread, spreadOf } from './statistics.js';

/** With less than this share of a core used, the server was not what limited the rate. */
const SERVER_BOUND = 0.9;

export type Verdict = 'pass' | 'miss' | '-';

/** What a bench found. Its JSON is the file of `--json`. */
export interface Result {
  readonly environment: Environment;
  readonly settings: Settings & { readonly pinned: boolean };
  readonly scenarios: readonly ScenarioResult[];
}

export interface ScenarioResult {
  readonly name: string;
  readonly doc: string;
  readonly unit: string;
  readonly spread: Spread;
  /** Multiples of the baseline's rate, and of its rate per second of processor time; null: not held to it. */
  readonly ratio: Spread | null;
  readonly ratioPerCpu: Spread | null;
  readonly target: Target | null;
  readonly verdict: Verdict;
  /** Shares of one core while the clock ran; null if that was not watched. */
  readonly serverCpu: number | null;
  readonly loadCpu: number | null;
  /** The server had processor time left: the load, or something else on the machine, was the limit. */
  readonly clientBound: boolean;
  readonly publishLatencyP50Us: number | null;
  readonly publishLatencyP99Us: number | null;
  readonly samples: readonly Sample[];
}

export function resultOf(
  environment: Environment,
  settings: Settings,
  pinned: boolean,
  measured: readonly Measured[],
): Result {
  return {
    environment,
    settings: { ...settings, pinned },
    scenarios: measured.map((one) => scenarioResultOf(one, settings.judged)),
  };
}

function scenarioResultOf({ scenario, samples, ratios }: Measured, judged: boolean): ScenarioResult {
  const { name, doc, unit, target } = scenario;
  const spread = spreadOf(samples.map((sample) => sample.value));
  const ratio = ratios.length > 0 ? spreadOf(ratios.map(({ rate }) => rate)) : null;
  const ratioPerCpu = ratios.length > 0 ? spreadOf(ratios.map(({ perCpu }) => perCpu)) : null;
  // What is idle has no processor time worth a column.
  const isRate = unit.endsWith('/s');
  const serverCpu = isRate ? medianOf(samples, 'serverCpu') : null;
  return {
    name,
    doc,
    unit,
    spread,
    ratio,
    ratioPerCpu,
    target,
    verdict: judged ? verdictOf(target, spread, ratio) : '-',
    serverCpu,
    loadCpu: isRate ? medianOf(samples, 'loadCpu') : null,
    clientBound: serverCpu !== null && serverCpu < SERVER_BOUND,
    publishLatencyP50Us: medianOf(samples, 'publishLatencyP50Us'),
    publishLatencyP99Us: medianOf(samples, 'publishLatencyP99Us'),
    samples,
  };
}

function verdictOf(target: Target | null, spread: Spread, ratio: Spread | null): Verdict {
  if (target === null) return '-';
  if (target.kind === 'amount') return spread.median <= target.atMost ? 'pass' : 'miss';
  return ratio !== null && ratio.median >= target.atLeast ? 'pass' : 'miss';
}

function medianOf(samples: readonly Sample[], field: string): number | null {
  const values = samples.map((sample) => sample.report[field]).filter((value) => typeof value === 'number');
  return values.length > 0 ? spreadOf(values).median : null;
}

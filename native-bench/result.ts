import type { Environment } from './environment.js';
import type { MicroResult } from './micro/run.js';
import type { Measured } from './rounds.js';
import type { Sample, Target } from './scenarios/scenario.js';
import type { Settings } from './settings.js';
import { type Spread, spreadOf } from './statistics.js';

/** With less than this share of a core used, the server was not what limited the rate. */
const SERVER_BOUND = 0.9;

/** A bound for the ratio, or for the value itself. */
export type ResultTarget = { readonly kind: 'atLeast' | 'atMost' | 'amount'; readonly bound: number };

export type Verdict = 'pass' | 'miss' | '-';

/** What a bench found. Its JSON is the file of `--json`. */
export interface Result {
  readonly environment: Environment;
  readonly settings: Settings & { readonly pinned: boolean };
  readonly micro: readonly MicroResult[];
  readonly scenarios: readonly ScenarioResult[];
}

export interface ScenarioResult {
  readonly name: string;
  readonly doc: string;
  readonly unit: string;
  readonly beside: { readonly server: string; readonly load: string } | null;
  /** Null if there is not one sample. */
  readonly spread: Spread | null;
  /** Why another server has no number, in some rounds or in all: `lost events in 5 of 5 tries`. */
  readonly fault: string | null;
  /** Multiples of what `of` measures, and of that per second of processor time; null: not held to it, or no rate. */
  readonly ratio: Spread | null;
  readonly ratioPerCpu: Spread | null;
  readonly of: string | null;
  readonly target: ResultTarget | null;
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

export function resultOf(options: {
  environment: Environment;
  settings: Settings;
  pinned: boolean;
  micro: readonly MicroResult[];
  measured: readonly Measured[];
}): Result {
  const { environment, settings, pinned, micro, measured } = options;
  return {
    environment,
    settings: { ...settings, pinned },
    micro,
    scenarios: measured.map((one) => scenarioResultOf(one, settings.judged)),
  };
}

function scenarioResultOf(measured: Measured, judged: boolean): ScenarioResult {
  const { scenario, samples, ratios, fault } = measured;
  const { name, doc, unit, target, beside = null } = scenario;
  const spread = spreadOfAny(samples.map((sample) => sample.value));
  const ratio = spreadOfAny(ratios.map(({ value }) => value));
  // What is idle has no processor time worth a column.
  const isRate = unit.endsWith('/s');
  const serverCpu = isRate ? medianOf(samples, 'serverCpu') : null;
  return {
    name,
    doc,
    unit,
    beside,
    spread,
    fault,
    ratio,
    ratioPerCpu: spreadOfAny(ratios.flatMap((each) => each.perCpu ?? [])),
    of: target === null || target.kind === 'amount' ? null : target.of.name,
    target: targetOf(target),
    verdict: judged ? verdictOf(target, spread, ratio) : '-',
    serverCpu,
    loadCpu: isRate ? medianOf(samples, 'loadCpu') : null,
    clientBound: serverCpu !== null && serverCpu < SERVER_BOUND,
    publishLatencyP50Us: medianOf(samples, 'publishLatencyP50Us'),
    publishLatencyP99Us: medianOf(samples, 'publishLatencyP99Us'),
    samples,
  };
}

function targetOf(target: Target | null): ResultTarget | null {
  if (target === null) return null;
  const { kind } = target;
  return { kind, bound: kind === 'amount' ? target.atMost : target.times };
}

function verdictOf(target: Target | null, spread: Spread | null, ratio: Spread | null): Verdict {
  if (target === null || spread === null) return '-';
  if (target.kind === 'amount') return spread.median <= target.atMost ? 'pass' : 'miss';
  // What it is held to has no number.
  if (ratio === null) return '-';
  const isMet = target.kind === 'atLeast' ? ratio.median >= target.times : ratio.median <= target.times;
  return isMet ? 'pass' : 'miss';
}

function medianOf(samples: readonly Sample[], field: string): number | null {
  const values = samples.map((sample) => sample.report[field]).filter((value) => typeof value === 'number');
  return spreadOfAny(values)?.median ?? null;
}

function spreadOfAny(values: readonly number[]): Spread | null {
  return values.length > 0 ? spreadOf(values) : null;
}

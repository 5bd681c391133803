import { numberOf } from './load-client.js';
import { NoNumber } from './peers/attempts.js';
import type { Bench, Sample, Scenario } from './scenarios/scenario.js';

/** All samples of a scenario, in the order of the rounds. */
export interface Measured {
  readonly scenario: Scenario;
  readonly samples: Sample[];
  /** Each sample as a multiple of what was measured beside it; empty if it is not held to another scenario. */
  readonly ratios: Ratio[];
  /** Why there is no sample in some rounds, for people; null if there is one in each. */
  fault: string | null;
}

export interface Ratio {
  /** Of the values as they were. */
  readonly value: number;
  /** Of rates per second of the server's processor time: what stays when others use the core as well. */
  readonly perCpu: number | null;
}

/**
 * Measures everything in rounds, so that a machine whose speed drifts does so for all. What is held to another
 * scenario is divided by the mean of one measurement of that just before and one just after it. Where another server
 * gives no number the rest goes on.
 */
export async function measureInRounds(
  bench: Bench,
  scenarios: readonly Scenario[],
  onMeasured: (scenario: Scenario, outcome: Sample | NoNumber, round: number) => void,
): Promise<Measured[]> {
  const measured = new Map<Scenario, Measured>();
  for (let round = 1; round <= bench.settings.runs; round++) {
    const measure = async (scenario: Scenario): Promise<Sample | NoNumber> => {
      const outcome = await scenario.measure(bench).catch(asNoNumber);
      const entry = entryOf(measured, scenario);
      if (outcome instanceof NoNumber) entry.fault = outcome.message;
      else entry.samples.push(outcome);
      onMeasured(scenario, outcome, round);
      return outcome;
    };
    let last: { reference: Scenario; outcome: Sample | NoNumber } | null = null;
    for (const scenario of scenarios) {
      const reference = referenceOf(scenario);
      if (reference === null) {
        await measure(scenario);
        continue;
      }
      // What came after the one before stands just before this one.
      const before: Sample | NoNumber =
        last?.reference === reference ? last.outcome : await measure(reference);
      const outcome = await measure(scenario);
      const after = await measure(reference);
      const beside = [before, after].filter(isSample);
      if (isSample(outcome) && beside.length > 0) {
        entryOf(measured, scenario).ratios.push(ratioOf(scenario, outcome, beside));
      }
      last = { reference, outcome: after };
    }
  }
  return [...measured.values()];
}

/** How many measurements that takes. */
export function countMeasurements(runs: number, scenarios: readonly Scenario[]): number {
  let count = 0;
  let last: Scenario | null = null;
  for (const scenario of scenarios) {
    const reference = referenceOf(scenario);
    count += reference === null ? 1 : reference === last ? 2 : 3;
    if (reference !== null) last = reference;
  }
  return runs * count;
}

function referenceOf({ target }: Scenario): Scenario | null {
  return target === null || target.kind === 'amount' ? null : target.of;
}

function entryOf(measured: Map<Scenario, Measured>, scenario: Scenario): Measured {
  let entry = measured.get(scenario);
  if (entry === undefined)
    measured.set(scenario, (entry = { scenario, samples: [], ratios: [], fault: null }));
  return entry;
}

function asNoNumber(error: unknown): NoNumber {
  if (error instanceof NoNumber) return error;
  throw error;
}

function isSample(outcome: Sample | NoNumber): outcome is Sample {
  return !(outcome instanceof NoNumber);
}

function ratioOf({ unit }: Scenario, sample: Sample, beside: readonly Sample[]): Ratio {
  const perCpu = ({ value, report }: Sample) => value / numberOf(report, 'serverCpu');
  return {
    value: sample.value / meanOf(beside.map(({ value }) => value)),
    perCpu: unit.endsWith('/s') ? perCpu(sample) / meanOf(beside.map(perCpu)) : null,
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

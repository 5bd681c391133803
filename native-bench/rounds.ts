import { numberOf } from './load-client.js';
import type { Bench, Sample, Scenario } from './scenarios/scenario.js';

/** All samples of a scenario, in the order of the rounds. */
export interface Measured {
  readonly scenario: Scenario;
  readonly samples: Sample[];
  /** Each sample as a multiple of what was measured beside it; empty if it is not held to another scenario. */
  readonly ratios: Ratio[];
}

export interface Ratio {
  /** Of the values as they were. */
  readonly value: number;
  /** Of rates per second of the server's processor time: what stays when others use the core as well. */
  readonly perCpu: number | null;
}

/**
 * Measures everything in rounds, so that a machine whose speed drifts does so for all. What is held to another
 * scenario is divided by the mean of one measurement of that just before and one just after it.
 */
export async function measureInRounds(
  bench: Bench,
  scenarios: readonly Scenario[],
  onSample: (scenario: Scenario, sample: Sample, round: number) => void,
): Promise<Measured[]> {
  const measured = new Map<Scenario, Measured>();
  for (let round = 1; round <= bench.settings.runs; round++) {
    const measure = async (scenario: Scenario): Promise<Sample> => {
      const sample = await scenario.measure(bench);
      entryOf(measured, scenario).samples.push(sample);
      onSample(scenario, sample, round);
      return sample;
    };
    let last: { reference: Scenario; sample: Sample } | null = null;
    for (const scenario of scenarios) {
      const reference = referenceOf(scenario);
      if (reference === null) {
        await measure(scenario);
        continue;
      }
      // What came after the one before stands just before this one.
      const before: Sample = last?.reference === reference ? last.sample : await measure(reference);
      const sample = await measure(scenario);
      const after = await measure(reference);
      entryOf(measured, scenario).ratios.push(ratioOf(scenario, sample, [before, after]));
      last = { reference, sample: after };
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
  if (entry === undefined) measured.set(scenario, (entry = { scenario, samples: [], ratios: [] }));
  return entry;
}

function ratioOf({ unit }: Scenario, sample: Sample, [before, after]: readonly [Sample, Sample]): Ratio {
  const perCpu = ({ value, report }: Sample) => value / numberOf(report, 'serverCpu');
  return {
    value: (2 * sample.value) / (before.value + after.value),
    perCpu: unit.endsWith('/s') ? (2 * perCpu(sample)) / (perCpu(before) + perCpu(after)) : null,
  };
}

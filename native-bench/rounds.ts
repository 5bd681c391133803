import { numberOf } from './load-client.js';
import type { Bench, Sample, Scenario } from './scenarios/scenario.js';
import { baseline } from './scenarios/send.js';

/** All samples of a scenario, in the order of the rounds. */
export interface Measured {
  readonly scenario: Scenario;
  readonly samples: readonly Sample[];
  /** Each sample as a multiple of the baseline around it; empty if it is not held to the baseline. */
  readonly ratios: readonly Ratio[];
}

export interface Ratio {
  /** Of the rates as they were. */
  readonly rate: number;
  /** Of the rates per second of the server's processor time: what stays when others use the core as well. */
  readonly perCpu: number;
}

/**
 * Measures everything in rounds, so that a machine whose speed drifts does so for all. What is held to the
 * baseline is divided by the mean of one baseline just before and one just after it.
 */
export async function measureInRounds(
  bench: Bench,
  scenarios: readonly Scenario[],
  onSample: (scenario: Scenario, sample: Sample, round: number) => void,
): Promise<Measured[]> {
  const baselines: Sample[] = [];
  const measured = scenarios.map(notMeasured);

  for (let round = 1; round <= bench.settings.runs; round++) {
    const measure = async (scenario: Scenario): Promise<Sample> => {
      const sample = await scenario.measure(bench);
      onSample(scenario, sample, round);
      return sample;
    };
    let before = await measure(baseline);
    baselines.push(before);
    for (const { scenario, samples, ratios } of measured) {
      const sample = await measure(scenario);
      samples.push(sample);
      if (scenario.target?.kind !== 'baselines') continue;
      const after = await measure(baseline);
      baselines.push(after);
      ratios.push(ratioOf(sample, before, after));
      before = after;
    }
  }
  return [{ scenario: baseline, samples: baselines, ratios: [] }, ...measured];
}

function ratioOf(sample: Sample, before: Sample, after: Sample): Ratio {
  const perCpu = ({ value, report }: Sample) => value / numberOf(report, 'serverCpu');
  return {
    rate: (2 * sample.value) / (before.value + after.value),
    perCpu: (2 * perCpu(sample)) / (perCpu(before) + perCpu(after)),
  };
}

function notMeasured(scenario: Scenario): { scenario: Scenario; samples: Sample[]; ratios: Ratio[] } {
  return { scenario, samples: [], ratios: [] };
}

import Benchmark from 'benchmark';
import { microCases } from './cases.js';

/** What a piece of the hot path costs by itself, in this process, on whichever core it runs. */
export interface MicroResult {
  readonly name: string;
  readonly unit: string;
  /** Of `unit`, by the mean of the samples. */
  readonly perSecond: number;
  readonly nanosecondsEach: number;
  /** Relative margin of error of the mean, percent, at 95 % confidence. */
  readonly marginPercent: number;
  readonly samples: number;
}

/** @param seconds to sample each case for. */
export function runMicro(seconds: number): MicroResult[] {
  const cases = microCases();
  const results: MicroResult[] = [];
  const suite = new Benchmark.Suite();
  for (const { name, call } of cases) suite.add(name, call, { maxTime: seconds, minSamples: 5 });
  suite.on('cycle', ({ target }: Benchmark.Event) => {
    const { stats, error } = target as Benchmark.Target & { error?: Error };
    if (error) throw error;
    const found = cases.find((each) => each.name === target.name);
    if (found === undefined || stats === undefined) throw new Error(`no result of ${target.name}`);
    const { name, unit, perCall } = found;
    results.push({
      name,
      unit,
      perSecond: perCall / stats.mean,
      nanosecondsEach: (stats.mean * 1e9) / perCall,
      marginPercent: stats.rme,
      samples: stats.sample.length,
    });
  });
  suite.run();
  return results;
}

export function formatMicro(results: readonly MicroResult[]): string {
  const width = Math.max(...results.map(({ name }) => name.length));
  const lines = results.map(({ name, unit, perSecond, nanosecondsEach, marginPercent }) => {
    const each = nanosecondsEach < 10 ? nanosecondsEach.toFixed(3) : nanosecondsEach.toFixed(0);
    const rate = Math.round(perSecond).toLocaleString('en').padStart(15);
    return `${name.padEnd(width)}  ${rate} ${unit}/s  ${each} ns each  ±${marginPercent.toFixed(1)} %`;
  });
  return `${lines.join('\n')}\n`;
}

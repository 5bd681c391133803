import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Outcome, simulate } from './simulate.js';

export interface CrewOptions {
  readonly processes: number;
  /** Whether each seed is run twice and compared. */
  readonly twice: boolean;
  readonly untilFailure: boolean;
}

/** What came of a range of seeds. */
export interface Results {
  seeds: number;
  failed: number;
  seconds: number;
  steps: number;
  events: number;
  resumes: number;
  refusals: number;
}

const PROGRESS_MS = 5000;

/** Runs a range of seeds, in this process or in several, and calls back with each that fails. */
export async function runSeeds(
  first: number,
  last: number,
  options: CrewOptions,
  failed: (outcome: Outcome) => void,
): Promise<Results> {
  const results: Results = { seeds: 0, failed: 0, seconds: 0, steps: 0, events: 0, resumes: 0, refusals: 0 };
  const startedAt = performance.now();
  let shownAt = startedAt;
  let next = first;
  /** The next seed, or null when there is nothing more to do. */
  const take = (): number | null => {
    if (next > last || (options.untilFailure && results.failed > 0)) return null;
    return next++;
  };
  const judge = (outcome: Outcome): void => {
    results.seeds++;
    for (const count of ['steps', 'events', 'resumes', 'refusals'] as const) results[count] += outcome[count];
    if (outcome.verdicts.length > 0) {
      results.failed++;
      failed(outcome);
    }
    const nowAt = performance.now();
    results.seconds = (nowAt - startedAt) / 1000;
    if (nowAt - shownAt < PROGRESS_MS) return;
    shownAt = nowAt;
    const rate = Math.round((60 * results.seeds) / results.seconds);
    console.error(
      `${results.seeds} of ${last - first + 1} seeds, ${rate} a minute, ${results.failed} failed`,
    );
  };
  if (options.processes === 1) {
    for (let seed = take(); seed !== null; seed = take()) judge(await simulate(seed, options));
  } else {
    await Promise.all(Array.from({ length: options.processes }, () => runMember(take, options.twice, judge)));
  }
  return results;
}

/** One process of the crew, from its first seed to its last. */
function runMember(
  take: () => number | null,
  twice: boolean,
  judge: (outcome: Outcome) => void,
): Promise<void> {
  const member = fork(fileURLToPath(new URL('main.js', import.meta.url)), ['--crew']);
  return new Promise((resolve, reject) => {
    const send = (): void => {
      const seed = take();
      if (seed === null) member.disconnect();
      else member.send({ seed, twice });
    };
    member.on('message', (outcome) => {
      judge(outcome as Outcome);
      send();
    });
    member.on('error', reject);
    member.on('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`a process of the simulation ended with ${code}`));
    });
    send();
  });
}

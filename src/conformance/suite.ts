import { setTimeout as delay } from 'node:timers/promises';
import type { Check, Section } from './check.js';
import { Mismatch, Skipped } from './expect.js';
import { type Endpoint, exchange } from './http-client.js';
import { terms } from './section-1-terms.js';
import { streams } from './section-2-streams.js';
import { publish } from './section-3-publish.js';
import { subscribe } from './section-4-subscribe.js';
import { webSockets } from './section-5-websocket.js';
import { pages } from './section-6-pages.js';
import { acknowledgements } from './section-7-acknowledge.js';
import { errors } from './section-8-errors.js';
import { security } from './section-9-security.js';
import { operations } from './section-10-operations.js';
import { Target } from './target.js';

/** Every section that is checked, in the order of the contract. Another one is a file and a line here. */
export const SECTIONS: readonly Section[] = [
  terms,
  streams,
  publish,
  subscribe,
  webSockets,
  pages,
  acknowledgements,
  errors,
  security,
  operations,
];

export interface Result {
  readonly section: string;
  /** What is so where it passes. */
  readonly what: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What went wrong, or what it would take; null when it passed. */
  readonly reason: string | null;
}

export interface SuiteOptions extends Endpoint {
  /** Sections by number, such as `4.4`, or `4` for all of it. Absent: all. */
  readonly only?: readonly string[] | undefined;
}

/** Checks have streams of their own, so that some of them can wait while others run. */
const CHECKS_AT_A_TIME = 4;
const CHECK_MS_MAX = 120_000;

/**
 * Runs the checks against the server and resolves with a result for each, in the order of the contract. What the
 * suite made there is removed again.
 *
 * @throws {Mismatch} when nothing answers at the URL.
 */
export async function runSuite({ url, token, only }: SuiteOptions): Promise<Result[]> {
  await exchange({ url, token }, { path: '/v1/streams?limit=1' });
  const checks = SECTIONS.flatMap((section) => section.checks).filter((check) =>
    isWanted(check.section, only),
  );
  const results: Result[] = new Array(checks.length);
  const target = new Target({ url, token });
  let next = 0;
  const work = async () => {
    for (let index = next++; index < checks.length; index = next++)
      results[index] = await runCheck(checks[index] as Check, target);
  };
  await Promise.all(Array.from({ length: CHECKS_AT_A_TIME }, work));
  await target.cleanUp();
  return results;
}

/** Whether `4.4` is meant by `4.4` or by `4`, but not by `4.5`. */
function isWanted(section: string, only: readonly string[] | undefined): boolean {
  return only === undefined || only.some((wanted) => section === wanted || section.startsWith(`${wanted}.`));
}

/** Whether there is anything to check under this number. */
export function hasChecks(number: string): boolean {
  return SECTIONS.some(({ checks }) => checks.some(({ section }) => isWanted(section, [number])));
}

async function runCheck({ section, what, run }: Check, target: Target): Promise<Result> {
  const clock = new AbortController();
  const late = delay(CHECK_MS_MAX, undefined, { signal: clock.signal }).then(() => {
    throw new Mismatch(`not over after ${CHECK_MS_MAX} ms`);
  });
  late.catch(() => undefined);
  try {
    await Promise.race([run(target), late]);
    return { section, what, outcome: 'passed', reason: null };
  } catch (error) {
    const outcome = error instanceof Skipped ? 'skipped' : 'failed';
    return { section, what, outcome, reason: error instanceof Error ? error.message : String(error) };
  } finally {
    clock.abort();
  }
}

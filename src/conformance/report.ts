import { type Result, SECTIONS } from './suite.js';

const MARKS = { passed: 'ok  ', failed: 'FAIL', skipped: 'skip' } as const;

/** A table for each section, and the sum. */
export function reportText(results: readonly Result[]): string {
  const tables = SECTIONS.flatMap(({ number, title }) => {
    const own = results.filter(({ section }) => section === number || section.startsWith(`${number}.`));
    return own.length === 0 ? [] : [[`${number} ${title}`, ...own.flatMap(linesOf), ''].join('\n')];
  });
  const { passed, failed, skipped } = countsOf(results);
  return [...tables, `${passed} passed, ${failed} failed, ${skipped} skipped`].join('\n');
}

/** One object: the sums, and every result. */
export function reportJson(results: readonly Result[]): string {
  return JSON.stringify({ ...countsOf(results), results }, undefined, 2);
}

export function countsOf(results: readonly Result[]): Record<Result['outcome'], number> {
  const count = (wanted: Result['outcome']) => results.filter(({ outcome }) => outcome === wanted).length;
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
}

function linesOf({ section, what, outcome, reason }: Result): string[] {
  const line = `  ${MARKS[outcome]}  ${section.padEnd(4)} ${what}`;
  return reason === null ? [line] : [line, ...reason.split('\n').map((part) => `             ${part}`)];
}

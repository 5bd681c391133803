import { formatProblem, type Problem } from '../config/problem.js';
import { EXIT_USAGE } from './exit-code.js';

export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function printError(line: string): void {
  process.stderr.write(`gapless: ${line}\n`);
}

/** Says all that is wrong with how a command was called. */
export function refuse(problems: readonly Problem[], help: string): number {
  for (const problem of problems) printError(formatProblem(problem));
  printError(`see ${help}`);
  return EXIT_USAGE;
}

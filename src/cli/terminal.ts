import { formatProblem, type Problem } from '../config/problem.js';
import { EXIT_OK, EXIT_USAGE } from './exit-code.js';

export function printLine(line: string): void {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', endWithReader);
  process.stdout.write(`${line}\n`);
}

/** Who reads may leave before the end, as `head` does: then there is nobody to print for, and nothing to say. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT_OK);
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

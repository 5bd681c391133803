import { unknownName } from '../config/problem.js';
import type { Command } from './command.js';
import { configCommand } from './config.js';
import { conformanceCommand } from './conformance.js';
import { doctorCommand } from './doctor.js';
import { EXIT_OK, EXIT_USAGE } from './exit-code.js';
import { publishCommand } from './publish.js';
import { serveCommand } from './serve.js';
import { streamsCommand } from './streams.js';
import { subscribeCommand } from './subscribe.js';
import { printError, printLine, refuse } from './terminal.js';
import { tokenCommand } from './token.js';
import { packageVersion } from './version.js';

const helpCommand: Command = {
  name: 'help',
  summary: 'say what a command does',
  usage: commandList,
  async run([name]) {
    const command = COMMANDS.find((known) => known.name === name);
    if (name !== undefined && command === undefined) return refuseCommand(name);
    printLine((command ?? helpCommand).usage());
    return EXIT_OK;
  },
};

const COMMANDS: readonly Command[] = [
  serveCommand,
  publishCommand,
  subscribeCommand,
  streamsCommand,
  configCommand,
  tokenCommand,
  conformanceCommand,
  doctorCommand,
  helpCommand,
];

/** Runs the command that the arguments name, and gives the exit code of the process (contract 11). */
export async function run(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined) {
    printError(`no command\n\n${commandList()}`);
    return EXIT_USAGE;
  }
  if (name === '--help' || name === '-h') return helpCommand.run([]);
  if (name === '--version') return printVersion();

  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) return refuseCommand(name);
  if (rest.includes('--help') || rest.includes('-h')) return helpCommand.run([name]);
  if (rest.includes('--version')) return printVersion();
  return command.run(rest);
}

function printVersion(): number {
  printLine(packageVersion());
  return EXIT_OK;
}

function refuseCommand(name: string): number {
  const known = COMMANDS.map((command) => command.name);
  const problem = unknownName({ where: name, name, known, what: 'command' });
  return refuse([problem, { where: 'commands', message: known.join(', ') }], 'gapless help');
}

function commandList(): string {
  return [
    'Usage: gapless COMMAND [FLAGS]',
    '',
    'Commands:',
    ...COMMANDS.map(({ name, summary }) => `  ${name.padEnd(13)}${summary}`),
    '',
    'gapless COMMAND --help says more about each. gapless --version prints the version.',
  ].join('\n');
}

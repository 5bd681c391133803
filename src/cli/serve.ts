import type { Config } from '../config/schema.js';
import { createLogger, type Logger } from '../log.js';
import type { Command } from './command.js';
import { EXIT_FAILED } from './exit-code.js';
import { loadSettings, settingsHelp } from './settings.js';
import { printError, refuse } from './terminal.js';
import { type RunningBroker, untilEnd } from './until-end.js';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'run the broker until SIGTERM or SIGINT',
  usage,
  async run(argv) {
    const settings = loadSettings(argv);
    if (settings.outcome === 'refused') return refuse(settings.problems, 'gapless serve --help');
    return serve(settings.config);
  },
};

async function serve(config: Config): Promise<number> {
  const log = createLogger({ level: config.logLevel, thread: 'main' });
  const broker = await start(config, log);
  if (broker === undefined) return EXIT_FAILED;

  // Before the line below: whoever waits for it may send a signal as soon as it is there.
  const ended = untilEnd(broker, log);
  const { port } = broker;
  const url = `http://${address(config.host, port)}`;
  log.info({ url, port, threads: config.threads, memory: config.memory }, 'listening');
  return ended;
}

async function start(config: Config, log: Logger): Promise<RunningBroker | undefined> {
  try {
    // Loaded here and not above: the commands that only print need no native code, and where its binary is missing
    // this is the place to say so.
    const BROKER: string = '../server/start-broker.js';
    const { startBroker } = await import(BROKER);
    return await startBroker(config, log);
  } catch (error) {
    printError(explainStart(error, config, log));
    return undefined;
  }
}

/** One line for the user. What the user cannot have caused is logged with its stack as well. */
function explainStart(error: unknown, { host, port }: Config, log: Logger): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `cannot listen on ${address(host, port)}: the port is in use`;
  if (code !== undefined) return `cannot listen on ${address(host, port)}: ${message}`;
  log.fatal({ err: error }, 'cannot start');
  return `cannot start: ${message}`;
}

function address(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function usage(): string {
  return [
    'Usage: gapless serve [SETTINGS]',
    '',
    'Runs the broker. SIGTERM or SIGINT sends subscribers away over the drain time and ends it; a second',
    'one ends it at once.',
    '',
    settingsHelp(),
  ].join('\n');
}

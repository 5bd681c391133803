import type { Config } from '../config/schema.js';
import { createLogger, type Logger } from '../log.js';
import type { RunningBroker } from '../server/start-broker.js';
import type { Command } from './command.js';
import { EXIT_FAILED } from './exit-code.js';
import { loadSettings, settingsHelp } from './settings.js';
import { printError, refuse } from './terminal.js';
import { untilEnd } from './until-end.js';

/** What the system says about an address that cannot be listened on. */
const LISTEN_FAILURES: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'not permitted'],
  ['EADDRINUSE', 'the port is in use'],
  ['EADDRNOTAVAIL', 'not an address of this machine'],
  ['EAI_AGAIN', 'the name cannot be looked up'],
  ['ENOTFOUND', 'there is no such name'],
]);

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
  const url = `http${config.tlsCertFile === null ? '' : 's'}://${address(config.host, port)}`;
  log.info({ url, port, threads: config.threads, memory: config.memory }, 'listening');
  return ended;
}

async function start(config: Config, log: Logger): Promise<RunningBroker | undefined> {
  try {
    // Loaded here and not above: the commands that only print need no native code, and where its binary is
    // missing this is the place to say so.
    const { startBroker } = await import('../server/start-broker.js');
    return await startBroker(config, log);
  } catch (error) {
    printError(explainStart(error, config, log));
    return undefined;
  }
}

/** One line for the user. What another address or port would not cure is logged with its stack as well. */
function explainStart(error: unknown, { host, port }: Config, log: Logger): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const reason = LISTEN_FAILURES.get(code);
  if (reason !== undefined) return `cannot listen on ${address(host, port)}: ${reason}`;
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

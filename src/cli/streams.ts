import { type GaplessClient, GaplessError, type StreamState } from '../client/client.js';
import { floorOf } from '../client/stream-state.js';
import { BROKER_OPTIONS, BROKER_USAGE, clientOf, failed } from './broker-flags.js';
import type { Command } from './command.js';
import { readCommandFlags, textOf } from './command-flags.js';
import { EXIT_OK } from './exit-code.js';
import { printLine, refuse } from './terminal.js';

const WATCH_MS = 1000;
/** Streams of one list: more than a terminal shows. */
const STREAMS_MAX = 10_000;
/** Clears a terminal and goes to its top. */
const CLEAR = '\x1b[2J\x1b[H';

export const streamsCommand: Command = {
  name: 'streams',
  summary: 'list streams and where they stand',
  usage,
  async run(argv) {
    const { values, positionals, problems } = readCommandFlags(argv, {
      ...BROKER_OPTIONS,
      prefix: { type: 'string' },
      watch: { type: 'boolean' },
      json: { type: 'boolean' },
    });
    const client = clientOf(values, problems);
    for (const name of positionals) problems.push({ where: name, message: 'unexpected; see --prefix' });
    if (problems.length > 0) return refuse(problems, 'gapless streams --help');
    const prefix = textOf(values, 'prefix') ?? '';
    const show = values['json'] === true ? jsonLines : table;
    try {
      if (values['watch'] !== true) printLine(show(await listAll(client, prefix)));
      else await watch(client, prefix, show);
      return EXIT_OK;
    } catch (error) {
      return failed(error);
    }
  },
};

async function listAll(client: GaplessClient, prefix: string): Promise<StreamState[]> {
  const streams: StreamState[] = [];
  for await (const state of client.streams({ prefix })) if (streams.push(state) === STREAMS_MAX) break;
  return streams;
}

/** Until SIGINT. A broker that is away for a moment is waited for. */
async function watch(
  client: GaplessClient,
  prefix: string,
  show: (streams: readonly StreamState[]) => string,
): Promise<void> {
  let isOver = false;
  process.once('SIGINT', () => {
    isOver = true;
  });
  while (!isOver) {
    let text: string;
    try {
      text = show(await listAll(client, prefix));
    } catch (error) {
      if (!(error instanceof GaplessError) || error.code !== 'unreachable') throw error;
      text = error.message;
    }
    printLine(`${process.stdout.isTTY ? CLEAR : ''}${text}`);
    await new Promise((resolve) => setTimeout(resolve, WATCH_MS));
  }
}

const COLUMNS: readonly (readonly [string, (state: StreamState) => string | number])[] = [
  ['STREAM', ({ name }) => name],
  ['FLOOR', floorOf],
  ['COMMITTED', ({ committed }) => committed],
  ['HEAD', ({ head }) => head],
  ['BYTES', ({ bytes }) => bytes],
  ['READERS', ({ subscribers }) => subscribers],
  ['', ({ closed }) => (closed ? 'closed' : '')],
];

function table(streams: readonly StreamState[]): string {
  const rows = streams.map((state) => COLUMNS.map(([, of]) => String(of(state))));
  const lines = [COLUMNS.map(([title]) => title), ...rows];
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function jsonLines(streams: readonly StreamState[]): string {
  return streams.map((state) => JSON.stringify(state)).join('\n');
}

function usage(): string {
  return [
    'Usage: gapless streams [--prefix TEXT] [--watch] [--json] [--url URL] [--token TOKEN]',
    '',
    'Lists streams: the events that can be read, what is committed, bytes in memory, and how many read.',
    '  --prefix TEXT   only those whose names begin so',
    '  --watch         again every second, until SIGINT',
    '  --json          one JSON object a line, as the server has it',
    ...BROKER_USAGE,
  ].join('\n');
}

import { type RawEvent, ResumeUnavailableError } from '../client/client.js';
import { BROKER_OPTIONS, BROKER_USAGE, clientOf, failed, streamOf } from './broker-flags.js';
import type { Command } from './command.js';
import { readCommandFlags, textOf } from './command-flags.js';
import { EXIT_FAILED, EXIT_OK } from './exit-code.js';
import { printError, printLine, refuse } from './terminal.js';

export const subscribeCommand: Command = {
  name: 'subscribe',
  summary: 'follow a stream, over any break',
  usage,
  async run(argv) {
    const { values, positionals, problems } = readCommandFlags(argv, {
      ...BROKER_OPTIONS,
      cursor: { type: 'string' },
      types: { type: 'string' },
      limit: { type: 'string' },
      json: { type: 'boolean' },
    });
    const client = clientOf(values, problems);
    const stream = problems.length > 0 ? '' : streamOf(positionals, problems);
    const limitText = textOf(values, 'limit');
    if (limitText !== undefined && !/^[1-9][0-9]{0,8}$/.test(limitText)) {
      problems.push({ where: '--limit', message: `${limitText}, expected a number from 1` });
    }
    if (problems.length > 0) return refuse(problems, 'gapless subscribe --help');
    const leaving = new AbortController();
    process.once('SIGINT', () => leaving.abort());
    const events = client.subscribe(stream, {
      cursor: textOf(values, 'cursor'),
      types: textOf(values, 'types')?.split(','),
      decode: (event: RawEvent) => event,
      signal: leaving.signal,
      onStatus: (status) => {
        if (status.state === 'waiting') printError(`${status.error.message}, coming back`);
      },
    });
    const write = values['json'] === true ? jsonLine : readableLines;
    let left = limitText === undefined ? Number.POSITIVE_INFINITY : Number(limitText);
    try {
      for await (const { data } of events) {
        printLine(write(data));
        if (--left === 0) break;
      }
      return EXIT_OK;
    } catch (error) {
      if (leaving.signal.aborted) return gone(events.cursor);
      if (!(error instanceof ResumeUnavailableError) || error.earliest === null) return failed(error);
      printError(`${error.message}; the first cursor that works is ${error.earliest}`);
      return EXIT_FAILED;
    }
  },
};

/** Who leaves is told where to come back to. */
function gone(cursor: string | null): number {
  if (cursor !== null) printError(`to go on from here: --cursor ${cursor}`);
  return EXIT_OK;
}

function readableLines({ id, type, data }: RawEvent): string {
  return `${id} ${type} ${typeof data === 'string' ? data : `<${data.length} bytes> ${base64Of(data)}`}`;
}

/** As a page has it (contract 6). */
function jsonLine({ id, type, data }: RawEvent): string {
  if (typeof data === 'string') return JSON.stringify({ id, type, data });
  return JSON.stringify({ id, type, data: base64Of(data), encoding: 'base64' });
}

function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.length).toString('base64');
}

function usage(): string {
  return [
    'Usage: gapless subscribe STREAM [--cursor CURSOR] [--types TYPE,...] [--limit N] [--json] [--url URL] [--token TOKEN]',
    '',
    'Prints events as they come, each once, and comes back after breaks. Ends when the stream is closed, after N',
    'events, or on SIGINT, and then says where to go on. Where events are gone it says so, with exit code 1.',
    '  --cursor CURSOR the last event seen, or `earliest`; without it, what comes from now on',
    '  --types TYPE,.. only events of these types',
    '  --limit N       ends after so many events',
    '  --json          one JSON object a line: id, type, data, and encoding where data is base64',
    ...BROKER_USAGE,
  ].join('\n');
}

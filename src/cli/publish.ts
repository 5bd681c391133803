import { createInterface } from 'node:readline';
import type { Publisher } from '../client/client.js';
import { BROKER_OPTIONS, BROKER_USAGE, clientOf, failed, streamOf } from './broker-flags.js';
import type { Command } from './command.js';
import { readCommandFlags, textOf } from './command-flags.js';
import { EXIT_OK } from './exit-code.js';
import { printLine, refuse } from './terminal.js';

const PROGRESS_MS = 500;

export const publishCommand: Command = {
  name: 'publish',
  summary: 'append events to a stream',
  usage,
  async run(argv) {
    const { values, positionals, problems } = readCommandFlags(argv, {
      ...BROKER_OPTIONS,
      type: { type: 'string' },
    });
    const client = clientOf(values, problems);
    const stream = problems.length > 0 ? '' : streamOf(positionals, problems);
    if (problems.length > 0) return refuse(problems, 'gapless publish --help');
    const given = positionals.slice(1);
    const type = textOf(values, 'type');
    const source = given.length > 0 ? given : createInterface({ input: process.stdin, crlfDelay: Infinity });
    try {
      const cursor = await publishAll(client.publisher(stream, { lingerMs: 5 }), source, type);
      if (cursor !== null) printLine(cursor);
      return EXIT_OK;
    } catch (error) {
      return failed(error);
    }
  },
};

/** Publishes, and says on a terminal how far it is. @returns the cursor of the last event. */
async function publishAll(
  publisher: Publisher,
  source: AsyncIterable<string> | Iterable<string>,
  type: string | undefined,
): Promise<string | null> {
  let events = 0;
  let bytes = 0;
  async function* counted(): AsyncGenerator<string> {
    for await (const data of source) {
      events++;
      bytes += data.length;
      yield data;
    }
  }
  const { stderr } = process;
  const show = (): void => void stderr.write(`\r${events} events, ${(bytes / 1e6).toFixed(1)} MB`);
  const showing = stderr.isTTY ? setInterval(show, PROGRESS_MS) : null;
  try {
    return await publisher.publishAll(counted(), { type });
  } finally {
    if (showing !== null) {
      clearInterval(showing);
      show();
      stderr.write('\n');
    }
  }
}

function usage(): string {
  return [
    'Usage: gapless publish STREAM [DATA ...] [--type TYPE] [--url URL] [--token TOKEN]',
    '',
    'Appends each DATA as an event, or without any each line of standard input, in their order and each once,',
    'however often a request has to be sent. Prints the cursor of the last one.',
    '  --type TYPE     the type of the events',
    ...BROKER_USAGE,
  ].join('\n');
}

/**
 * The flags of all commands that talk to a broker.
 */

import { GaplessClient, GaplessError } from '../client/client.js';
import type { Problem } from '../config/problem.js';
import { type FlagValues, textOf } from './command-flags.js';
import { EXIT_FAILED } from './exit-code.js';
import { printError } from './terminal.js';

export const BROKER_OPTIONS = { url: { type: 'string' }, token: { type: 'string' } } as const;

export const BROKER_USAGE = [
  '  --url URL       the broker; else GAPLESS_URL, else http://127.0.0.1:8080',
  '  --token TOKEN   sent as a bearer token; better GAPLESS_TOKEN, for other users see the flags of a process',
];

const DEFAULT_URL = 'http://127.0.0.1:8080';

/** @param problems what is wrong with the flags is added. */
export function clientOf(values: FlagValues, problems: Problem[]): GaplessClient {
  const url = textOf(values, 'url') ?? process.env['GAPLESS_URL'] ?? DEFAULT_URL;
  const token = textOf(values, 'token') ?? process.env['GAPLESS_TOKEN'];
  try {
    return new GaplessClient({ url, token });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    problems.push({ where: '--url', message: error.message });
    return new GaplessClient({ url: DEFAULT_URL });
  }
}

/** The one stream that a command is about. */
export function streamOf(positionals: readonly string[], problems: Problem[]): string {
  const [name] = positionals;
  if (name === undefined) problems.push({ where: 'STREAM', message: 'expected the name of a stream' });
  return name ?? '';
}

/** What the broker, or the way to it, refused, in one line. @throws anything else. */
export function failed(error: unknown): number {
  if (!(error instanceof GaplessError)) throw error;
  const { code, message, status } = error;
  printError(status === 0 ? `${message} (${code})` : `${message} (${code}, ${status})`);
  return EXIT_FAILED;
}

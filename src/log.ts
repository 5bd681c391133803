import { type Logger, pino, stdTimeFunctions } from 'pino';
import type { Config } from './config/schema.js';

export type { Logger };

/**
 * Fields that carry what must never be logged: credentials, and what publishers send. Nobody here passes them
 * on purpose; this covers a request or an error that is logged whole.
 */
const SECRET_FIELDS = ['authorization', 'cookie', 'access_token', 'token', 'data', 'body'];

export interface LoggerOptions {
  readonly level: Config['logLevel'];
  /** Names the thread that writes, on every line: `main`, `edge-1`. */
  readonly thread: string;
}

/**
 * A logger of JSON lines on standard output, one for each thread. Lines are written before the call returns:
 * the last one before an exit is the one that explains it.
 */
export function createLogger({ level, thread }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid, thread },
      timestamp: stdTimeFunctions.isoTime,
      redact: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    },
    pino.destination({ fd: 1, sync: true }),
  );
}

import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
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
 * A logger of JSON lines on standard output, one for each thread. Lines are written before the call returns, if they are
 * read: the last one before an exit is the one that explains it.
 */
export function createLogger({ level, thread }: LoggerOptions): Logger {
  output ??= new LineOutput(thread);
  return pino(
    {
      level,
      base: { pid: process.pid, thread },
      timestamp: stdTimeFunctions.isoTime,
      redact: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    },
    output,
  );
}

const WARN = pino.levels.values.warn;
/** Bytes of lines that wait, of one thread. */
const WAITING_BYTES_MAX = 1024 * 1024;
const RETRY_MS = 50;
/** How long an exit waits for whoever reads. */
const EXIT_MS_MAX = 1000;
const EXIT_RETRY_MS = 5;

/**
 * Standard output of one thread. Nobody waits for whoever reads it: what a pipe does not take at once waits here, and where
 * that is too much lines are left out, and counted in a line. Nor does the broker end for what cannot be written.
 */
class LineOutput {
  /** Node has pipes and sockets not block that it opens as its own standard output, which all threads share. */
  readonly #fd = (isMainThread ? process.stdout.fd : undefined) ?? 1;
  readonly #thread: string;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #retrying: NodeJS.Timeout | null = null;

  constructor(thread: string) {
    this.#thread = thread;
    process.on('exit', () => this.#finish());
  }

  /** Takes a line, with its line feed. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > WAITING_BYTES_MAX) this.#lost++;
    else this.#keep(bytes);
    if (this.#retrying === null) this.#flush();
  }

  #keep(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  /** Writes what is taken, and sees to the rest later. @returns whether nothing is left. */
  #flush(): boolean {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const written = this.#tryWrite(next);
      if (written === null) return this.#giveUp();
      this.#waitingBytes -= written;
      if (written < next.length) {
        this.#waiting[0] = next.subarray(written);
        this.#retryLater();
        return false;
      }
      this.#waiting.shift();
      if (this.#waiting.length === 0) this.#tellLost();
    }
    return true;
  }

  /** @returns bytes that are taken; null: nobody reads any more, or the disk is full. */
  #tryWrite(bytes: Buffer): number | null {
    try {
      return writeSync(this.#fd, bytes);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : null;
    }
  }

  #giveUp(): true {
    this.#lost += this.#waiting.length;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return true;
  }

  #tellLost(): void {
    if (this.#lost === 0) return;
    const from = { pid: process.pid, thread: this.#thread };
    const said = { count: this.#lost, msg: 'lines not written' };
    this.#lost = 0;
    const line = { level: WARN, time: new Date().toISOString(), ...from, ...said };
    this.#keep(Buffer.from(`${JSON.stringify(line)}\n`));
  }

  #retryLater(): void {
    if (this.#retrying !== null) return;
    this.#retrying = setTimeout(() => {
      this.#retrying = null;
      this.#flush();
    }, RETRY_MS).unref();
  }

  #finish(): void {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const endMs = performance.now() + EXIT_MS_MAX;
    while (!this.#flush() && performance.now() < endMs) Atomics.wait(pause, 0, 0, EXIT_RETRY_MS);
  }
}

let output: LineOutput | null = null;

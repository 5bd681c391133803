import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const SOURCES = fileURLToPath(new URL('../../native-bench/load', import.meta.url));
const BINARY = fileURLToPath(new URL('./load', import.meta.url));
const FALLBACK = fileURLToPath(new URL('./fallback/client.js', import.meta.url));

/** What runs as the load client. */
let program: readonly string[] = [BINARY];

/** The least of nice(1). */
const YIELDS = 19;

/** The load client verifies before it prints; it explains its modes and options when it is run without any. */
export type LoadMode = 'send' | 'publish' | 'fanout' | 'latency' | 'storm' | PeerMode | 'ask' | HeldMode;

/** Those that know nothing of the server. */
export type PeerMode = 'peer' | 'peer-storm';

/** Those that go on until they are told to end. */
export type HeldMode = 'idle' | 'surge' | 'attack';

/** Option names without the dashes: `{ 'duration-ms': 3000 }`. Undefined ones are left out. */
export type LoadOptions = Readonly<Record<string, number | string | undefined>>;

/** The line of JSON that a run printed. */
export type LoadReport = Readonly<Record<string, number | string>>;

/** A load that goes on until it is released. */
export interface HeldLoad {
  /** What it said when it stood. */
  readonly report: LoadReport;
  /**
   * Ends it; resolves with what it says last, null if nothing. Rejects if one of its connections had broken, or had
   * been sent what it should not have got.
   */
  release(): Promise<LoadReport | null>;
}

/** The load could not be run, or its verification failed: a gap, a duplicate, a refusal, a timeout. */
export class LoadError extends Error {}

/**
 * Makes the native load client ready, or where there is no compiler the one in TypeScript, which knows only
 * fan-outs, storms and publishing. `BENCH_LOAD=fallback` asks for that one.
 *
 * @returns whether it is the native one.
 */
export function prepareLoadClient(): boolean {
  const isNative = process.env.BENCH_LOAD !== 'fallback' && (isCompiled() || canRun(compiler()));
  if (isNative) compileLoadClient();
  else program = [process.execPath, FALLBACK];
  return isNative;
}

function isCompiled(): boolean {
  return sources(/\.[ch]$/).every((file) => modifiedMs(BINARY) > modifiedMs(file));
}

function sources(ending: RegExp): string[] {
  return readdirSync(SOURCES)
    .filter((name) => ending.test(name))
    .map((name) => join(SOURCES, name));
}

function compiler(): string {
  return process.env.CC ?? 'cc';
}

function canRun(command: string): boolean {
  return process.platform === 'linux' && spawnSync(command, ['--version']).error === undefined;
}

/** Compiles the load client if it is missing or older than its sources. Returns its path. */
export function compileLoadClient(): string {
  if (process.platform !== 'linux') throw new LoadError('the load client needs Linux (epoll)');
  if (isCompiled()) return BINARY;
  const unfinished = `${BINARY}.${process.pid}`;
  mkdirSync(new URL('.', import.meta.url), { recursive: true });
  const args = ['-O2', '-Wall', '-Wextra', '-o', unfinished, ...sources(/\.c$/)];
  const result = spawnSync(compiler(), args, { encoding: 'utf8' });
  if (result.error) {
    throw new LoadError(
      `the load client is C and needs a compiler, but \`${compiler()}\` cannot be run ` +
        `(${result.error.message}); install gcc or clang with the C library headers, or set CC`,
    );
  }
  if (result.status !== 0) throw new LoadError(`\`${compiler()}\` failed on ${SOURCES}:\n${result.stderr}`);
  // By a rename, so that another bench that starts now sees a whole file or none.
  renameSync(unfinished, BINARY);
  return BINARY;
}

/** Runs one measurement to its end. Rejects with LoadError. */
export async function runLoad(mode: LoadMode, options: LoadOptions): Promise<LoadReport> {
  const child = start(mode, options);
  child.stdin.end();
  const [output] = await Promise.all([text(child.stdout), ended(child, mode)]);
  return parseReport(output, mode);
}

/** Starts a load that goes on, and resolves when it stands. Rejects with LoadError. */
export async function holdLoad(mode: HeldMode, options: LoadOptions): Promise<HeldLoad> {
  const child = start(mode, options);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const end = ended(child, mode);
  // Whoever releases it hears of it; until then nobody may be waiting.
  end.catch(() => undefined);
  const nextLine = async (): Promise<string | null> => {
    const { value, done } = await lines.next();
    return done ? null : value;
  };
  const line = await nextLine();
  if (line === null) await end;
  return {
    report: parseReport(line ?? '', mode),
    async release() {
      child.stdin.end();
      const last = await nextLine();
      await end;
      return last === null ? null : parseReport(last, mode);
    },
  };
}

/** @throws LoadError if the report has no such number */
export function numberOf(report: LoadReport, field: string): number {
  const value = report[field];
  if (typeof value !== 'number') throw new LoadError(`the load client did not report ${field}`);
  return value;
}

function modifiedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function start(mode: LoadMode, options: LoadOptions): ChildProcessWithoutNullStreams {
  const args = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  // They are there to be in the server's way, not in that of the load that is measured beside them.
  const command =
    mode === 'surge' || mode === 'attack' ? ['nice', '-n', String(YIELDS), ...program] : program;
  return spawn(command[0] as string, [...command.slice(1), mode, ...args]);
}

async function ended(child: ChildProcessWithoutNullStreams, mode: LoadMode): Promise<void> {
  const [[code, signal], problem] = await Promise.all([once(child, 'close'), text(child.stderr)]);
  if (code === 0) return;
  throw new LoadError(`mode ${mode} ended with ${signal ?? `exit code ${code}`}\n${problem.trim()}`);
}

function parseReport(line: string, mode: LoadMode): LoadReport {
  try {
    return JSON.parse(line) as LoadReport;
  } catch (cause) {
    throw new LoadError(`the load client printed no report in mode ${mode}: ${line}`, { cause });
  }
}

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { BrokerProcess, type LogLine, type SuiteBroker, useBroker } from './broker-process.js';

const DIRECTORY_PREFIX = 'gapless-test-';

/** An empty directory of its own; whoever asks for it removes it. */
export function makeDirectory(): string {
  return mkdtempSync(join(tmpdir(), DIRECTORY_PREFIX));
}

export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
}

/** An empty directory that is gone after the test. */
export function temporaryDirectory(context: TestContext): string {
  const directory = makeDirectory();
  context.after(() => removeDirectory(directory));
  return directory;
}

/** Like `useBroker`, with a data directory of its own. */
export function useDurableBroker(...flags: string[]): SuiteBroker {
  const directory = makeDirectory();
  const broker = useBroker('--data-dir', directory, ...flags);
  after(() => removeDirectory(directory));
  return broker;
}

/** A broker with a data directory that outlives its process: one port and one directory, process after process. */
export class DurableBroker {
  /** Lines that no healthy run logs, of the processes before this one. */
  readonly #pastErrors: LogLine[] = [];
  #process: BrokerProcess;

  private constructor(
    readonly directory: string,
    process: BrokerProcess,
  ) {
    this.#process = process;
  }

  /** In a directory of its own; process and directory are gone after the test, however it ends. */
  static async start(context: TestContext, ...flags: string[]): Promise<DurableBroker> {
    const directory = makeDirectory();
    let broker: DurableBroker | undefined;
    context.after(async () => {
      if (broker?.process.isRunning) await broker.process.kill();
      removeDirectory(directory);
    });
    broker = new DurableBroker(directory, await BrokerProcess.start('--data-dir', directory, ...flags));
    return broker;
  }

  get process(): BrokerProcess {
    return this.#process;
  }

  get port(): number {
    return this.#process.port;
  }

  /** The next process in the same directory, after this one ended. */
  async startAgain(...changedFlags: string[]): Promise<void> {
    this.#pastErrors.push(...this.#process.errors);
    this.#process = await this.#process.startAgain(...changedFlags);
  }

  /** SIGTERM, and the next process once the last one has ended as it should. */
  async restart(...changedFlags: string[]): Promise<void> {
    assert.deepEqual(await this.#process.stop(), { code: 0, signal: null }, this.#process.stderr);
    await this.startAgain(...changedFlags);
  }

  /** SIGKILL, and the next process. */
  async killAndStart(): Promise<void> {
    await this.#process.kill();
    await this.startAgain();
  }

  /** Ends the test's use of it: it must stop by itself, and no process in the directory may have complained. */
  async end(): Promise<void> {
    assert.deepEqual(await this.#process.stop(), { code: 0, signal: null }, this.#process.stderr);
    assert.deepEqual([...this.#pastErrors, ...this.#process.errors], []);
    assert.equal(this.#process.stderr, '');
  }
}

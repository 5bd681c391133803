import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY_ROOT } from './paths.js';

const SOURCE_FILE = join(REPOSITORY_ROOT, 'test/support/clock-jump.c');

/** Why a test is skipped where there is no such clock. */
export const NO_JUMPING_CLOCK = 'setting the clock of one process needs Linux and a C compiler';

/** The time of day of one process and its threads, which the test sets while it runs. */
export class JumpingClock {
  readonly #file: number;

  private constructor(
    file: number,
    /** What the process has to be started with. */
    readonly env: Readonly<Record<string, string>>,
  ) {
    this.#file = file;
    this.jumpTo(0);
  }

  /** @returns null where it cannot be built. */
  static build(directory: string): JumpingClock | null {
    const library = join(directory, 'clock-jump.so');
    const path = join(directory, 'clock-jump');
    const flags = ['-shared', '-fPIC', '-O1', '-o', library, SOURCE_FILE];
    if (process.platform !== 'linux' || spawnSync('cc', flags).status !== 0) return null;
    return new JumpingClock(openSync(path, 'w+'), { LD_PRELOAD: library, CLOCK_JUMP_FILE: path });
  }

  /** Sets it to so many seconds before (negative) or after the true time. */
  jumpTo(seconds: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    writeSync(this.#file, bytes, 0, bytes.length, 0);
  }

  close(): void {
    closeSync(this.#file);
  }
}

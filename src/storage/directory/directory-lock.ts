/**
 * Keeps a data directory to one process. The owner listens on a Unix socket in it: while it lives a connection
 * succeeds, and however it ends, by SIGKILL too, the kernel refuses the next. For processes of one machine.
 *
 * The sockets are called `lock.1`, `lock.2` and so on, each starter's one higher than the last. To take one over by its
 * own name would leave a moment in which a slow starter removes the socket of a faster one, and both win. So:
 *
 * L1  A name is taken by a hard link, which fails where there is one, and whose socket listens by then.
 * L2  A starter takes the name after the highest, once it has found the highest to be dead.
 * L3  It owns the directory when its name is the highest after it was taken. The highest is never removed, so a starter
 *     that slept through others' starts finds a higher one, and gives way.
 */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, linkSync, openSync, readdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';

/** Another process has the directory. */
export class DirectoryInUse extends Error {
  override readonly name = 'DirectoryInUse';
  /** Of the owner; null when it did not say, because it is stopped or busy. */
  readonly pid: number | null;

  constructor(pid: number | null) {
    super(pid === null ? 'in use by another process' : `in use by process ${pid}`);
    this.pid = pid;
  }
}

const NAME = /^lock\.([1-9][0-9]{0,14})$/;
const UNNAMED = /^lock-[0-9a-f]+$/;
/** Each time around another starter was faster; they cannot all be for ever. */
const ATTEMPTS_MAX = 100;
const PID_TIMEOUT_MS = 1000;
/** What the kernel takes for the address of a socket, on any system. */
const ADDRESS_BYTES_MAX = 100;

export class DirectoryLock {
  readonly #directory: string;
  readonly #directoryFd: number;
  readonly #server: Server;

  private constructor(directory: string) {
    this.#directory = directory;
    this.#directoryFd = openSync(directory, constants.O_RDONLY);
    // A connection is all that is asked; who asks is told the owner's pid.
    this.#server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end(`${process.pid}\n`, () => socket.destroy());
    });
    this.#server.unref();
  }

  /**
   * @param directory where this process may create files.
   * @throws {DirectoryInUse}
   */
  static async acquire(directory: string): Promise<DirectoryLock> {
    const lock = new DirectoryLock(directory);
    try {
      await lock.#acquire();
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** The name stays, dead (L3). */
  async release(): Promise<void> {
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
    closeSync(this.#directoryFd);
  }

  async #acquire(): Promise<void> {
    const unnamed = `lock-${randomBytes(8).toString('hex')}`;
    this.#server.listen(this.#address(unnamed));
    await once(this.#server, 'listening');
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const highest = this.#highest();
      if (highest > 0) await this.#refuseAlive(highest);
      const own = highest + 1;
      if (!this.#take(unnamed, own)) continue;
      if (this.#highest() === own) return this.#clearUp(own);
      this.#unlink(`lock.${own}`);
    }
    throw new DirectoryInUse(null);
  }

  #highest(): number {
    const numbers = readdirSync(this.#directory).map((name) => Number(NAME.exec(name)?.[1] ?? 0));
    return Math.max(0, ...numbers);
  }

  #take(unnamed: string, number: number): boolean {
    try {
      linkSync(join(this.#directory, unnamed), join(this.#directory, `lock.${number}`));
      return true;
    } catch (error) {
      // Another was faster; or has cleared up already.
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST' || code === 'ENOENT') return false;
      throw error;
    }
  }

  /** What those before left behind, and the name that the socket was made with. */
  #clearUp(own: number): void {
    for (const name of readdirSync(this.#directory)) {
      const number = NAME.exec(name)?.[1];
      if (UNNAMED.test(name) || (number !== undefined && Number(number) < own)) this.#unlink(name);
    }
  }

  #unlink(name: string): void {
    try {
      unlinkSync(join(this.#directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  async #refuseAlive(number: number): Promise<void> {
    const socket = connect(this.#address(`lock.${number}`));
    socket.setTimeout(PID_TIMEOUT_MS, () => socket.destroy());
    let said = '';
    let isConnected = false;
    socket.on('connect', () => {
      isConnected = true;
    });
    socket.setEncoding('latin1').on('data', (text: string) => {
      said += text;
    });
    let failure: NodeJS.ErrnoException | null = null;
    socket.on('error', (error) => {
      failure = error;
    });
    await new Promise((resolve) => socket.on('close', resolve));
    // Who may not ask has not found an owner: it may be a dead one's that another user left.
    if (isForbidden(failure)) throw Object.assign(failure, { path: join(this.#directory, `lock.${number}`) });
    if (isConnected || !isDead(failure)) throw new DirectoryInUse(Number.parseInt(said, 10) || null);
  }

  /** Through the open directory where its own path would be too long. */
  #address(name: string): string {
    const path = join(this.#directory, name);
    if (Buffer.byteLength(path) <= ADDRESS_BYTES_MAX || process.platform !== 'linux') return path;
    return `/proc/self/fd/${this.#directoryFd}/${name}`;
  }
}

function isForbidden(failure: NodeJS.ErrnoException | null): failure is NodeJS.ErrnoException {
  return failure?.code === 'EACCES' || failure?.code === 'EPERM';
}

/** Whether nobody listens. Anything but a plain refusal leaves it open, and then the directory is not taken. */
function isDead(failure: NodeJS.ErrnoException | null): boolean {
  return failure !== null && ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(failure.code ?? '');
}

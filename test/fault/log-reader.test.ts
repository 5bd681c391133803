import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually, withDeadline } from '../support/deadline.js';
import { freePort } from '../support/free-port.js';
import { publish } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { MAIN_FILE } from '../support/paths.js';

const CHUNK = Buffer.alloc(4096, '\n');

/** A pipe, and how much there is in it. */
class Pipe {
  /** Both ends, so that a pipe without another reader is not a broken one. */
  readonly #ends: number;
  readonly path: string;

  constructor(directory: string) {
    this.path = join(directory, 'log');
    execFileSync('mkfifo', [this.path]);
    this.#ends = openSync(this.path, constants.O_RDWR | constants.O_NONBLOCK);
  }

  fill(): void {
    this.#untilAgain(() => writeSync(this.#ends, CHUNK));
  }

  read(): string {
    let text = '';
    const buffer = Buffer.alloc(CHUNK.length);
    this.#untilAgain(() => {
      text += buffer.toString('utf8', 0, readSync(this.#ends, buffer));
    });
    return text;
  }

  close(): void {
    closeSync(this.#ends);
  }

  #untilAgain(act: () => unknown): void {
    try {
      for (;;) act();
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN');
    }
  }
}

test('I10 who does not read the log lines keeps the broker from nothing, and is given them later', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'gapless-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  const pipe = new Pipe(directory);
  context.after(() => pipe.close());
  pipe.fill();
  const writing = openSync(pipe.path, constants.O_WRONLY);
  const port = await freePort();
  const flags = ['serve', '--port', String(port), '--memory', '64MiB', '--drain-ms', '0'];
  const broker = spawn(process.execPath, [MAIN_FILE, ...flags], { stdio: ['ignore', writing, 'inherit'] });
  context.after(() => broker.kill('SIGKILL'));
  closeSync(writing);
  await eventually('a broker that listens', async () => {
    const ready = await request(port, { path: '/readyz' }).catch(() => null);
    return ready?.status === 200;
  });
  await publish(port, 's', 'an event');
  let read = '';
  await eventually('its first line', () => {
    read += pipe.read();
    return read.includes('"msg":"listening"');
  });
  pipe.fill();
  const exited = once(broker, 'exit');
  broker.kill('SIGTERM');
  const [code] = await withDeadline('the end', exited);
  assert.equal(code, 0);
});

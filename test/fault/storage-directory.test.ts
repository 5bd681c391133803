import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openDataDirectory } from '#gapless/storage/directory/data-directory.js';
import { withDeadline } from '../support/deadline.js';
import { makeDirectory } from '../unit/storage-stage.js';

const STARTER_FILE = fileURLToPath(new URL('./storage-directory-starter.js', import.meta.url));
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** A process that wants the directory. */
class Starter {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(path: string, user?: number) {
    const args = [STARTER_FILE, path, ...(user === undefined ? [] : [String(user)])];
    this.#child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.#child.pid ?? assert.fail('it did not start');
  }

  async ready(): Promise<void> {
    assert.equal(await this.#line(), 'ready');
  }

  /** Lets it start; answers `owned`, or why not. */
  start(): Promise<string> {
    this.#child.stdin.write('start\n');
    return this.#line();
  }

  async kill(): Promise<void> {
    if (this.#child.signalCode !== null) return;
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await withDeadline('a starter to end', closed);
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  async #line(): Promise<string> {
    return (await withDeadline('a starter to say something', this.#lines.next())).value;
  }
}

describe('a data directory', () => {
  let parent = '';
  let path = '';
  const starters: Starter[] = [];

  beforeEach(() => {
    parent = makeDirectory();
    path = join(parent, 'data');
  });
  afterEach(async () => {
    await Promise.all(starters.splice(0).map((starter) => starter.kill()));
    rmSync(parent, { recursive: true });
  });

  async function ready(count: number, user?: number): Promise<Starter[]> {
    const made = Array.from({ length: count }, () => new Starter(path, user));
    starters.push(...made);
    await Promise.all(made.map((starter) => starter.ready()));
    return made;
  }

  it('is made for its owner alone, with the version of its format', async () => {
    const { path: absolute, storeIsMade, close } = await openDataDirectory(path);
    assert.equal(absolute, path);
    assert.equal(statSync(path).mode & 0o777, 0o700);
    const version = () => JSON.parse(readFileSync(join(path, 'VERSION'), 'utf8'));
    assert.deepEqual(version(), { format: 2, isNew: true });
    storeIsMade();
    assert.deepEqual(version(), { format: 2 });
    await close();
  });

  it('belongs to one process, which the next is told of', async () => {
    const [first, second] = (await ready(2)) as [Starter, Starter];
    assert.equal(await first.start(), 'owned');
    assert.equal(
      await second.start(),
      `${path} is in use by process ${first.pid}: stop that one, or choose another directory`,
    );
  });

  it('is refused to a second start in the same process too, until the first gives it up', async () => {
    const { close } = await openDataDirectory(path);
    await assert.rejects(openDataDirectory(path), { message: new RegExp(`process ${process.pid}:`) });
    await close();
    await (await openDataDirectory(path)).close();
  });

  it('is free again after SIGKILL', async () => {
    const [first, second] = (await ready(2)) as [Starter, Starter];
    assert.equal(await first.start(), 'owned');
    await first.kill();
    assert.equal(await second.start(), 'owned');
  });

  it('stays with an owner that is stopped', async () => {
    const [first, second] = (await ready(2)) as [Starter, Starter];
    assert.equal(await first.start(), 'owned');
    first.freeze();
    assert.match(await second.start(), /is in use by another process: /);
  });

  it('goes to one of many that start at once, again and again, each time after a kill', async () => {
    for (let round = 0; round < 3; round++) {
      const rivals = await ready(5);
      const said = await Promise.all(rivals.map((starter) => starter.start()));
      assert.equal(said.filter((line) => line === 'owned').length, 1, said.join('\n'));
      assert.equal(said.filter((line) => line.includes('is in use by ')).length, 4, said.join('\n'));
      await Promise.all(starters.splice(0).map((starter) => starter.kill()));
    }
    const left = readdirSync(path).filter((name) => name.startsWith('lock'));
    assert.equal(left.length <= 5, true, `what is left behind is cleared up: ${left.join(' ')}`);
  });

  it('goes to one of many that find the same dead owner, however their steps fall', async () => {
    for (let round = 0; round < 20; round++) {
      const results = await Promise.allSettled(Array.from({ length: 10 }, () => openDataDirectory(path)));
      const owners = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      assert.equal(owners.length, 1);
      await owners[0]?.close();
    }
  });

  it('may have a path that is longer than that of a socket', async () => {
    path = join(parent, 'x'.repeat(150), 'y'.repeat(150));
    const { close } = await openDataDirectory(path);
    await assert.rejects(openDataDirectory(path), { name: 'DataDirectoryError' });
    await close();
    await (await openDataDirectory(path)).close();
  });

  it('of another version is refused, and so is one whose version cannot be read', async () => {
    mkdirSync(path);
    for (const [format, advice] of [
      [3, 'use a newer version'],
      [1, 'use the version that made it'],
    ] as const) {
      writeFileSync(join(path, 'VERSION'), `{"format": ${format}}\n`);
      await assert.rejects(openDataDirectory(path), {
        name: 'DataDirectoryError',
        message: `${path} has format ${format}, and this version knows format 2: ${advice}`,
      });
    }
    writeFileSync(join(path, 'VERSION'), '1.2.3\n');
    await assert.rejects(openDataDirectory(path), { message: /VERSION does not say \{"format": 2\}/ });
    rmSync(join(path, 'VERSION'));
    writeFileSync(join(path, 'events.mdb'), '');
    await assert.rejects(openDataDirectory(path), { message: /has events\.mdb but no VERSION/ });
    rmSync(join(path, 'events.mdb'));
    await (await openDataDirectory(path)).close();
  });

  it('that is a file, or lies under one, is refused', async () => {
    writeFileSync(path, 'hello');
    const refused = { name: 'DataDirectoryError', message: /it is not a directory: choose another path$/ };
    await assert.rejects(openDataDirectory(path), refused);
    await assert.rejects(openDataDirectory(join(path, 'below')), refused);
    assert.equal(readFileSync(path, 'utf8'), 'hello');
  });

  it('that this user may not write is refused', {
    skip: !isRoot && 'only root can be somebody else',
  }, async () => {
    chmodSync(parent, 0o755);
    mkdirSync(path, { mode: 0o755 });
    const [there] = (await ready(1, NOBODY)) as [Starter];
    const refused = /cannot be used, this user may not read and write it: change its owner or mode$/;
    assert.match(await there.start(), refused);
    rmSync(path, { recursive: true });
    const [missing] = (await ready(1, NOBODY)) as [Starter];
    assert.match(await missing.start(), refused);
    assert.ok(!existsSync(path));
  });

  it('on a read-only file system is refused', async (context) => {
    mkdirSync(path);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', path]).status !== 0) {
      return context.skip('nothing can be mounted here');
    }
    try {
      const message =
        /cannot be used, it is on a read-only file system: choose another, or mount it writable$/;
      await assert.rejects(openDataDirectory(path), { name: 'DataDirectoryError', message });
      await assert.rejects(openDataDirectory(join(path, 'below')), { name: 'DataDirectoryError', message });
    } finally {
      spawnSync('umount', [path]);
    }
  });
});

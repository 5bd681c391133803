import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { BrokerProcess, type LaunchOptions } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { DurableBroker, temporaryDirectory } from '../support/durable-broker.js';
import { freshStream, publish, publishLines, readAll } from '../support/gapless-client.js';
import { SseSubscription } from '../support/sse-client.js';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const needsRoot = { skip: !isRoot && 'only root can be somebody else' };
const STORE = 'events.mdb';

/** A directory that a broker filled and left in good order. */
async function filledDirectory(context: TestContext): Promise<string> {
  const directory = temporaryDirectory(context);
  const broker = await BrokerProcess.start('--data-dir', directory);
  const lines = range(1, 300).map((seq) => `event ${seq} `.padEnd(1000, '.'));
  await publishLines(broker.port, freshStream('kept'), lines);
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  return directory;
}

/** What a broker says that does not start there: one line, after the name of the program. */
async function refusal(directory: string, more: Partial<LaunchOptions> = {}): Promise<string> {
  const flags = ['--data-dir', directory];
  const { exit, stderr } = await BrokerProcess.launchInVain({ flags, ...more });
  assert.deepEqual(exit, { code: 1, signal: null });
  const [line = '', ...rest] = stderr.split('\n');
  assert.deepEqual(rest, [''], `one line: ${stderr}`);
  return line;
}

/** Damages the file of the log; the start is refused in words like these, and leaves the file as it is. */
async function assertRefused(
  directory: string,
  damage: (file: string) => void,
  words: RegExp,
): Promise<void> {
  const file = join(directory, STORE);
  damage(file);
  const before = existsSync(file) ? readFileSync(file) : null;
  const line = await refusal(directory);
  assert.match(line, words);
  assert.ok(line.includes(directory), `where: ${line}`);
  assert.deepEqual(existsSync(file) ? readFileSync(file) : null, before, 'it is left as it is');
}

describe('a start that is refused says what is wrong, where, and what to do, with exit code 1', () => {
  it('a second broker in the same directory is refused, and the first goes on', async (context) => {
    const broker = await DurableBroker.start(context);
    const stream = freshStream('first');
    await publish(broker.port, stream, 'one');
    const subscription = await SseSubscription.open(broker.port, stream, { cursor: 'earliest' });
    assert.equal(
      await refusal(broker.directory),
      `gapless: cannot start: ${broker.directory} is in use by process ${broker.process.pid}: ` +
        'stop that one, or choose another directory',
    );
    await publish(broker.port, stream, 'two');
    await subscription.untilEvents(2);
    subscription.cut();
    await broker.restart();
    assert.deepEqual(
      (await readAll(broker.port, stream)).map(({ data }) => data),
      ['one', 'two'],
    );
    await broker.end();
  });

  it('a log whose file is missing or empty is not begun anew in silence (I3)', async (context) => {
    const directory = await filledDirectory(context);
    const lost = /events\.mdb is (missing|empty).*: restore it from a copy, or remove VERSION /;
    await assertRefused(directory, (file) => truncateSync(file, 0), lost);
    await assertRefused(directory, (file) => rmSync(file), lost);
    rmSync(join(directory, 'VERSION'));
    const broker = await BrokerProcess.start('--data-dir', directory);
    assert.equal((await publish(broker.port, freshStream('anew'), 'one')).first, 1);
    assert.deepEqual(await broker.stop(), { code: 0, signal: null }, 'begun anew when told to');
  });

  it('a broker that was killed before it had made its file starts the next time', async (context) => {
    const directory = temporaryDirectory(context);
    writeFileSync(join(directory, 'VERSION'), '{"format":2,"isNew":true}\n');
    for (const _start of range(1, 2)) {
      const broker = await BrokerProcess.start('--data-dir', directory);
      assert.deepEqual(JSON.parse(readFileSync(join(directory, 'VERSION'), 'utf8')), { format: 2 });
      await broker.kill();
    }
  });

  it('a file that is cut short, overwritten or not a log at all is refused', async (context) => {
    const directory = await filledDirectory(context);
    const file = join(directory, STORE);
    const whole = readFileSync(file);
    const damaged = /events\.mdb is damaged, .*: restore it from a copy$/;
    await assertRefused(directory, () => truncateSync(file, 40_000), damaged);
    writeFileSync(file, whole);
    await assertRefused(directory, () => overwrite(file, 2 * 4096, 8 * 4096), damaged);
    await assertRefused(directory, () => writeFileSync(file, 'not a log\n'.repeat(10_000)), damaged);
    writeFileSync(file, whole);
    const broker = await BrokerProcess.start('--data-dir', directory);
    assert.deepEqual(await broker.stop(), { code: 0, signal: null }, 'the copy that was restored is taken');
  });

  it('a directory of a newer version is refused', async (context) => {
    const directory = await filledDirectory(context);
    writeFileSync(join(directory, 'VERSION'), '{"format":3}\n');
    const words = /has format 3, and this version knows format 2: use a newer version$/;
    await assertRefused(directory, () => undefined, words);
  });

  it('a directory or a file that this user may not use is refused', needsRoot, async (context) => {
    const directory = await filledDirectory(context);
    const refused = (path: string) =>
      `gapless: cannot start: ${path} cannot be used, this user may not read and write it: ` +
      'change its owner or mode';
    assert.equal(await refusal(directory, { uid: NOBODY }), refused(directory));
    chmodSync(directory, 0o777);
    const [lock = ''] = readdirSync(directory).filter((name) => name.startsWith('lock.'));
    assert.equal(await refusal(directory, { uid: NOBODY }), refused(join(directory, lock)));
    chmodSync(join(directory, lock), 0o777);
    // A mark that cannot be read is not taken for none: the last events may be missing (I3).
    writeFileSync(join(directory, 'UNSYNCED'), 'another boot', { mode: 0o600 });
    for (const name of [STORE, `${STORE}-lock`, 'UNSYNCED']) {
      const file = join(directory, name);
      assert.equal(await refusal(directory, { uid: NOBODY }), refused(file));
      chmodSync(file, 0o666);
    }
    rmSync(join(directory, 'UNSYNCED'));
    const broker = await BrokerProcess.launch({ flags: ['--data-dir', directory], uid: NOBODY });
    assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  });
});

function overwrite(file: string, at: number, bytes: number): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, Buffer.alloc(bytes, 0xa5), 0, bytes, at);
}

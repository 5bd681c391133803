import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { cursorOf, range } from '../support/cursor.js';
import { withDeadline } from '../support/deadline.js';
import { createStream, freshStream, publish, publishLines, stateOf } from '../support/gapless-client.js';
import { MAIN_FILE } from '../support/paths.js';

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe('the command line beside a broker', () => {
  const broker = useBroker();

  function start(...argv: readonly string[]): {
    child: ChildProcessWithoutNullStreams;
    ended: Promise<Ended>;
  } {
    const env = { ...process.env, GAPLESS_URL: `http://127.0.0.1:${broker.port}` };
    const child = spawn(process.execPath, [MAIN_FILE, ...argv], { env });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (text: Buffer) => (stdout += text));
    child.stderr.on('data', (text: Buffer) => (stderr += text));
    const closed = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
    return { child, ended: withDeadline(`the end of gapless ${argv.join(' ')}`, closed, 60_000) };
  }

  async function run(...argv: readonly string[]): Promise<Ended> {
    const { child, ended } = start(...argv);
    child.stdin.end();
    return ended;
  }

  it('11 publish appends its arguments, and subscribe prints them, as text and as JSON', async () => {
    const stream = freshStream('arguments');
    const published = await run('publish', stream, 'one', 'two words', '--type', 'greeting');
    const { epoch } = await stateOf(broker.port, stream);
    assert.deepEqual([published.code, published.stdout], [0, `${cursorOf(epoch, 2)}\n`]);
    const read = await run('subscribe', stream, '--cursor', 'earliest', '--limit', '2');
    assert.equal(
      read.stdout,
      `${cursorOf(epoch, 1)} greeting one\n${cursorOf(epoch, 2)} greeting two words\n`,
    );
    await publish(broker.port, stream, Buffer.from([0, 255]), 'application/octet-stream');
    const json = await run('subscribe', stream, '--cursor', cursorOf(epoch, 1), '--limit', '2', '--json');
    assert.deepEqual(
      json.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
      [
        { id: cursorOf(epoch, 2), type: 'greeting', data: 'two words' },
        { id: cursorOf(epoch, 3), type: 'message', data: 'AP8=', encoding: 'base64' },
      ],
    );
  });

  it('11 publish appends each line of its input, in order', async () => {
    const stream = freshStream('lines');
    const { child, ended } = start('publish', stream);
    child.stdin.end(
      range(1, 5000)
        .map((n) => `line ${n}\n`)
        .join(''),
    );
    const { code, stdout } = await ended;
    const { epoch, head } = await stateOf(broker.port, stream);
    assert.deepEqual([code, stdout, head], [0, `${cursorOf(epoch, 5000)}\n`, 5000]);
  });

  it('11 subscribe says why it cannot resume, and where it could; and on SIGINT where to go on', async () => {
    const stream = freshStream('refused');
    await createStream(broker.port, stream, { retention: { events: 2 } });
    const { epoch } = await publishLines(broker.port, stream, range(1, 5000).map(String));
    const { code, stderr, stdout } = await run('subscribe', stream, '--cursor', cursorOf(epoch, 1));
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /the next event is not kept any more; the first cursor that works is [a-z0-9]+\.\d+/,
    );
    const { child, ended } = start('subscribe', stream, '--cursor', cursorOf(epoch, 4999));
    await withDeadline('an event', once(child.stdout, 'data'));
    child.kill('SIGINT');
    const left = await ended;
    assert.equal(left.code, 0);
    assert.match(left.stderr, new RegExp(`--cursor ${cursorOf(epoch, 5000)}\n$`));
  });

  it('11 ends quietly when who reads what it prints has left', async () => {
    const stream = freshStream('head');
    await publishLines(broker.port, stream, ['one', 'two']);
    const { child, ended } = start('subscribe', stream, '--cursor', 'earliest');
    await once(child.stdout, 'data');
    child.stdout.destroy();
    await publishLines(broker.port, stream, ['three']);
    const { code, stderr } = await ended;
    assert.deepEqual([code, stderr], [0, '']);
  });

  it('11 streams lists where each stands, as a table and as JSON', async () => {
    const stream = freshStream('listed');
    const { epoch } = await publishLines(broker.port, stream, ['one', 'two']);
    const { stdout } = await run('streams', '--prefix', stream);
    const [title, row, ...more] = stdout.trimEnd().split('\n');
    assert.match(title ?? '', /^STREAM +FLOOR +COMMITTED +HEAD +BYTES +READERS$/);
    assert.match(row ?? '', new RegExp(`^${stream} +1 +2 +2 +\\d+ +0$`));
    assert.deepEqual(more, []);
    const json = await run('streams', '--prefix', stream, '--json');
    assert.equal((JSON.parse(json.stdout) as { epoch: string }).epoch, epoch);
  });

  it('11 serve leaves alone what is exported for the other commands', async () => {
    const { child, ended } = start('serve', '--port', '0');
    const [line] = (await withDeadline('a line', once(child.stdout, 'data'))) as [Buffer];
    assert.match(line.toString(), /listening/);
    child.kill('SIGTERM');
    assert.equal((await ended).code, 0);
  });

  it('11 what is wrong with a call is exit code 2, and what the broker refuses 1', async () => {
    for (const argv of [
      ['publish'],
      ['subscribe', 's', '--nonsense'],
      ['subscribe', 's', '--limit', '0'],
      ['streams', 'x'],
    ]) {
      const { code, stderr } = await run(...argv);
      assert.equal(code, 2, argv.join(' '));
      assert.match(stderr, /gapless: see gapless (publish|subscribe|streams) --help/);
    }
    const refused = await run('publish', 'bad/name', 'x');
    assert.deepEqual([refused.code, refused.stderr.includes('invalid_stream_name')], [1, true]);
    const away = await run('streams', '--url', 'http://127.0.0.1:1');
    assert.deepEqual([away.code, away.stderr.includes('unreachable')], [1, true]);
  });
});

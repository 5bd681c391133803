import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { makeDirectory, removeDirectory } from '../support/durable-broker.js';
import { freshStream, publish, publishRequest, readAll, stateOf } from '../support/gapless-client.js';
import { HttpConnection } from '../support/http.js';
import { mountSmallDisk, NO_SMALL_DISK, unmountDisk } from '../support/small-disk.js';

const MIB = 1024 * 1024;
const PUBLISHES_MAX = 2000;

it('3.6 on a full disk publishing is refused, reading goes on, and all recovers when there is space (I4)', async (context) => {
  const disk = mountSmallDisk(16);
  if (disk === null) return context.skip(NO_SMALL_DISK);
  const ballast = join(disk, 'ballast');
  writeFileSync(ballast, Buffer.alloc(10 * MIB));
  const broker = await BrokerProcess.start('--data-dir', join(disk, 'data'));
  context.after(async () => {
    await broker.kill();
    unmountDisk(disk);
  });
  const stream = freshStream('full');
  const connection = await HttpConnection.open(broker.port);
  const acknowledged: number[] = [];
  let refusal = '';
  for (let i = 0; refusal !== 'log_full' && i < PUBLISHES_MAX; i++) {
    const response = await connection.request(publishRequest(stream, `${i} `.padEnd(64 * 1024, '.')));
    if (response.status === 200) acknowledged.push(response.json<{ last: number }>().last);
    else refusal = response.json<{ code: string }>().code;
    assert.ok(['', 'log_full', 'commit_unknown'].includes(refusal), refusal);
  }
  assert.equal(refusal, 'log_full', 'the disk was filled');

  const last = acknowledged.at(-1) as number;
  assert.equal((await stateOf(broker.port, stream)).committed, last, 'what is not committed is not shown');
  assert.equal((await readAll(broker.port, stream)).length, last);

  rmSync(ballast);
  const recovered = await eventually('publishes to be taken again', async () => {
    const response = await connection.request(publishRequest(stream, 'after'));
    return response.status === 200 && response.json<{ last: number }>().last;
  });
  const events = await readAll(broker.port, stream);
  assert.equal(events.length, recovered, 'every event up to the newest is there');
  for (const seq of acknowledged) assert.ok((events[seq - 1]?.data ?? '').length > 60_000);
  connection.destroy();
});

it('3.6 a stream whose memory is full of what waits for its commit answers 429 backpressure', async (context) => {
  const directory = makeDirectory();
  const broker = await BrokerProcess.start(
    ...['--data-dir', directory, '--stream-bytes-max', '64KiB', '--ring-bytes', '4KiB'],
  );
  context.after(async () => {
    await broker.kill();
    removeDirectory(directory);
  });
  const stream = freshStream('pressed');
  await publish(broker.port, stream, 'first');
  const connections = await Promise.all(Array.from({ length: 16 }, () => HttpConnection.open(broker.port)));
  const codes = new Set<string>();
  for (let round = 0; round < 100 && !codes.has('backpressure'); round++) {
    const answers = await Promise.all(
      connections.map((connection) => connection.request(publishRequest(stream, 'x'.repeat(20 * 1024)))),
    );
    for (const answer of answers)
      codes.add(answer.status === 200 ? 'ok' : answer.json<{ code: string }>().code);
  }
  assert.deepEqual([...codes].sort(), ['backpressure', 'ok']);
  for (const connection of connections) connection.destroy();
});

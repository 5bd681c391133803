import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startEmbeddedBroker } from '#gapless/server/embedded-broker.js';
import { freePort } from '../support/free-port.js';
import { request } from '../support/http.js';

test('11 a broker within a program that cannot start leaves its port to the next', async (context) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gapless-'));
  context.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const port = await freePort();
  const settings = { port, dataDir, dataDirWaitMs: 0, memory: '64MiB' };
  const owner = await startEmbeddedBroker({ ...settings, port: 0 });
  await assert.rejects(startEmbeddedBroker(settings), /in use by process/);
  await owner.stop();
  const broker = await startEmbeddedBroker(settings);
  assert.equal((await request(port, { path: '/readyz' })).status, 200);
  await broker.stop();
});

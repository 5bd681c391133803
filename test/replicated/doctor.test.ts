import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { json } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import type { JetStreamReport } from '#gapless/storage/jetstream/jetstream-report.js';
import { eventually } from '../support/deadline.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { MAIN_FILE } from '../support/paths.js';
import { startBroker } from '../support/replicated-brokers.js';

interface Bundle {
  sharedLog: JetStreamReport;
  findings: { level: string; what: string }[];
}

async function doctor(...flags: string[]): Promise<Bundle> {
  const child = spawn(process.execPath, [MAIN_FILE, 'doctor', '--json', ...flags]);
  return (await json(child.stdout)) as Bundle;
}

describe('11 gapless doctor of a log that brokers share', { skip: NATS_SKIP }, () => {
  it('11 has all servers, also those that were not named, who leads, who is behind, and which does not answer', async (context) => {
    const servers = await NatsServer.startCluster(context, 3);
    const [first, , third] = servers as [NatsServer, NatsServer, NatsServer];
    const url = servers.map((server) => server.url).join(',');
    const flags = ['--log-replicas', '3', '--log-wait-ms', '1m'];
    await startBroker(context, { url }, ...flags);
    await eventually('a log on all of them', async () => {
      const { sharedLog } = await doctor('--log', first.url, ...flags);
      assert.equal(sharedLog.problem, null);
      const names = sharedLog.servers.map(({ name }) => name);
      return names.length === 3 && sharedLog.log?.followers.every(({ current }) => current);
    });
    await third.kill();
    const { sharedLog, findings } = await eventually('the rest to be led', async () => {
      const bundle = await doctor('--log', url, ...flags);
      return (bundle.sharedLog.log?.leader ?? '') !== '' && bundle;
    });
    assert.equal(sharedLog.servers.filter(({ problem }) => problem === null).length, 2);
    const bad = findings.filter(({ level }) => level === 'bad').map(({ what }) => what);
    assert.ok(
      bad.some((what) => what.startsWith(`the NATS server 127.0.0.1:${third.port} cannot be used: `)),
      `${bad}`,
    );
  });

  it('11 a log that is still to be made is not made, and no user or password is told', async (context) => {
    const users = 'authorization { users: [ { user: "ada", password: "s3cret" } ] }';
    const { port } = await NatsServer.start(context, users);
    const { sharedLog, findings } = await doctor('--log', `nats://ada:s3cret@127.0.0.1:${port}`);
    assert.deepEqual([sharedLog.log, sharedLog.problem], [null, null]);
    assert.ok(findings.some(({ what }) => what === 'there is no JetStream stream GAPLESS yet'));
    const refused = await doctor('--log', `nats://ada:s3cre@127.0.0.1:${port}`);
    assert.match(refused.sharedLog.servers[0]?.problem ?? '', /refuse this user/);
    assert.doesNotMatch(JSON.stringify([refused, sharedLog, findings]), /s3cre/);
  });
});

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { BrokerProcess } from '../support/broker-process.js';
import { makeCertificate } from '../support/certificate.js';
import { eventually } from '../support/deadline.js';
import { deleteStream, freshStream, publish, publishRequest, readAll } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { NatsOperator } from '../support/nats-operator.js';
import { NATS_SKIP, NatsServer } from '../support/nats-server.js';
import { startBroker } from '../support/replicated-brokers.js';
import { Files } from '../support/tokens.js';

const SECRET = 's3cret';

/** All that a broker does at the servers, as the README says. */
const PERMISSIONS = {
  publish: [
    'gapless.GAPLESS.>',
    '$JS.API.STREAM.*.GAPLESS',
    '$JS.API.STREAM.MSG.*.GAPLESS',
    '$JS.API.CONSUMER.*.GAPLESS',
    '$JS.API.CONSUMER.*.GAPLESS.>',
    '$JS.FC.GAPLESS.>',
  ],
  subscribe: ['_INBOX.>'],
};

function usersConfig(permissions: object): string {
  const user = { user: 'broker', password: SECRET, permissions };
  return `authorization { users: [ ${JSON.stringify(user)} ] }`;
}

/** Why a broker does not start; it does not wait for what will not change. */
async function refusalOf(...flags: string[]): Promise<string> {
  const { exit, stderr } = await BrokerProcess.launchInVain({ flags: ['--log-wait-ms', '10m', ...flags] });
  assert.deepEqual(exit, { code: 1, signal: null });
  assert.doesNotMatch(stderr, new RegExp(SECRET));
  const [, reason = stderr] = /^gapless: cannot start: (.*)\n$/.exec(stderr) ?? [];
  return reason;
}

/** What it is told is kept, and there again after a restart, with other flags perhaps. */
async function assertKeeps(
  context: TestContext,
  flags: readonly string[],
  flagsAgain: readonly string[] = flags,
): Promise<void> {
  const stream = freshStream('kept');
  const first = await BrokerProcess.start(...flags);
  context.after(() => first.kill());
  await publish(first.port, stream, 'one');
  assert.deepEqual(await first.stop(), { code: 0, signal: null });
  const second = await BrokerProcess.start(...flagsAgain);
  context.after(() => second.kill());
  assert.deepEqual(
    (await readAll(second.port, stream)).map(({ data }) => data),
    ['one'],
  );
  await deleteStream(second.port, stream);
  for (const { errors, log } of [first, second]) {
    assert.deepEqual(errors, []);
    assert.doesNotMatch(JSON.stringify(log), new RegExp(SECRET));
  }
}

describe('NATS servers that do not take everybody', { skip: NATS_SKIP }, () => {
  const files = new Files();
  const [server, client, stranger] = ['server', 'client', 'stranger'].map((name) =>
    makeCertificate(files.folder, name),
  ) as [{ cert: string; key: string }, { cert: string; key: string }, { cert: string; key: string }];

  it('a log behind TLS, certificates of both sides and a password is used, and no other is taken for it', async (context) => {
    const tls = { cert_file: server.cert, key_file: server.key, ca_file: client.cert, verify: true };
    const nats = await NatsServer.start(context, `tls ${JSON.stringify(tls)}\n${usersConfig({})}`);
    const at = `127.0.0.1:${nats.port}`;
    const trust = ['--log-tls-ca-file', server.cert];
    const own = ['--log-tls-cert-file', client.cert, '--log-tls-key-file', client.key];
    // A URL that does not ask for TLS, with a name of who vouches for the servers, does.
    const credentials = files.write('user', `broker:${SECRET}\n`);
    await assertKeeps(
      context,
      ['--log', `tls://broker:${SECRET}@${at}`, ...trust, ...own],
      ['--log', `nats://${at}`, '--log-credentials-file', credentials, ...trust, ...own],
    );
    const user = `broker:${SECRET}@`;
    const refusals = await Promise.all([
      refusalOf('--log', `tls://${user}${at}`, '--log-tls-ca-file', stranger.cert, ...own),
      refusalOf('--log', `tls://${user}localhost:${nats.port}`, ...trust, ...own),
      refusalOf('--log', `tls://broker:${SECRET}x@${at}`, ...trust, ...own),
      refusalOf('--log', `tls://${at}`, ...trust, ...own),
      // It only hangs up on whom it does not know.
      refusalOf('--log', `tls://${user}${at}`, '--log-wait-ms', '0', ...trust),
    ]);
    for (const [index, expected] of [
      /^the certificate of the servers of the log is not accepted: /,
      /^the certificate .* not accepted: Hostname\/IP does not match/,
      /^the servers of the log refuse this user: /,
      /^the servers of the log refuse this user: /,
      /^no answer over TLS, which may be how a server says that it wants another certificate/,
    ].entries()) {
      assert.match(refusals[index] ?? '', expected);
    }
  });

  it('where TLS is asked for nothing is said in plain', async (context) => {
    const nats = await NatsServer.start(context);
    assert.equal(
      await refusalOf('--log', `tls://broker:${SECRET}@127.0.0.1:${nats.port}`),
      'the servers of the log do not speak TLS',
    );
  });

  it('files that cannot be used are named, and nothing of what is in them is said', async () => {
    const missing = `${files.folder}/missing`;
    const lines = files.write('lines', `${SECRET}\n${SECRET}\n`);
    const creds = files.write('broken', new NatsOperator().creds().replace(/^SU.*/m, `SU${SECRET}`));
    for (const [refusal, expected] of await Promise.all(
      [
        { flags: ['--log-credentials-file', missing], expected: /^ENOENT.*missing/ },
        { flags: ['--log-tls-ca-file', missing], expected: /^ENOENT.*missing/ },
        { flags: ['--log-credentials-file', lines], expected: /lines: expected the \.creds/ },
        { flags: ['--log-credentials-file', creds], expected: /broken: not the credentials of a NATS user/ },
        {
          flags: ['--log-tls-cert-file', client.cert, '--log-tls-key-file', stranger.key],
          expected: /stranger\.key: /,
        },
      ].map(async ({ flags, expected }) => {
        return [await refusalOf('--log', 'tls://127.0.0.1:1', ...flags), expected] as const;
      }),
    )) {
      assert.match(refusal, expected);
    }
  });

  it('the credentials of an operator are used, and those of another refused', async (context) => {
    const operator = new NatsOperator();
    const nats = await NatsServer.start(context, operator.config);
    const creds = files.write('user.creds', operator.creds());
    await assertKeeps(context, ['--log', nats.url, '--log-credentials-file', creds]);
    const others = files.write('other.creds', new NatsOperator().creds());
    assert.match(await refusalOf('--log', nats.url, '--log-credentials-file', others), /refuse this user: /);
  });

  it('a broker needs no more than what the README says, and says what is missing', async (context) => {
    const nats = await NatsServer.start(context, usersConfig(PERMISSIONS));
    const url = `nats://broker:${SECRET}@127.0.0.1:${nats.port}`;
    await assertKeeps(context, ['--log', url]);
    await nats.stop();
    await nats.startAgain(usersConfig({ ...PERMISSIONS, publish: PERMISSIONS.publish.slice(0, 1) }));
    assert.match(await refusalOf('--log', url), /^Permissions Violation for Publish to /);
  });

  it('3.6, 8 a password that changes is read from its file again, and a refusal is logged once', async (context) => {
    const nats = await NatsServer.start(context, usersConfig({}));
    const credentials = files.write('renewed', `broker:${SECRET}`);
    const broker = await startBroker(context, nats, '--log-credentials-file', credentials);
    const stream = freshStream('renewed');
    await publish(broker.port, stream, 'before');
    await nats.stop();
    await nats.startAgain(usersConfig({}).replaceAll(SECRET, 'another'));
    const { reason } = await broker.until('refused by the log');
    assert.match(String(reason), /refuse this user/);
    files.write('renewed', 'broker:another');
    await eventually('publishes to be taken again', async () => {
      const { status } = await request(broker.port, publishRequest(stream, 'after'));
      return status === 200 ? true : undefined;
    });
    assert.equal(broker.log.filter(({ msg }) => msg === 'refused by the log').length, 1);
    assert.equal((await readAll(broker.port, stream))[0]?.data, 'before');
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { BrokerProcess } from '../support/broker-process.js';
import { makeCertificate, plainFront } from '../support/certificate.js';
import { range } from '../support/cursor.js';
import { eventually, withDeadline } from '../support/deadline.js';
import { publish, publishLines, stateOf } from '../support/gapless-client.js';
import { exchangeRaw, HttpConnection, request } from '../support/http.js';
import { METRIC } from '../support/metric-names.js';
import { parseMetrics, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { Files } from '../support/tokens.js';

const files = new Files();
const first = makeCertificate(files.folder, 'first');
const second = makeCertificate(files.folder, 'second');

/** Who the broker says it is, to a client that comes now; one that meets the change of listeners is reset, and comes again. */
async function nameOf(port: number): Promise<unknown> {
  const socket: TLSSocket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  try {
    await withDeadline('a handshake', once(socket, 'secureConnect'));
    return socket.getPeerCertificate().subject.CN;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
    return nameOf(port);
  } finally {
    socket.destroy();
  }
}

async function start(...flags: string[]): Promise<BrokerProcess> {
  return BrokerProcess.start('--tls-cert-file', first.cert, '--tls-key-file', first.key, ...flags);
}

async function stopped(broker: BrokerProcess): Promise<void> {
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  assert.deepEqual(broker.errors, []);
}

it('9.3 with a certificate all is served over TLS, and nothing in plain', async () => {
  const broker = await start('--threads', '2');
  const port = await plainFront(broker.port, readFileSync(first.cert, 'utf8'));
  const subscription = await SseSubscription.open(port, 's');
  await subscription.untilPrimed();
  await publish(port, 's', 'one');
  await subscription.untilEvents(1);
  assert.deepEqual(subscription.data, ['one']);
  subscription.cut();
  assert.equal(broker.log.find(({ msg }) => msg === 'listening')?.url, `https://127.0.0.1:${broker.port}`);
  assert.equal(await exchangeRaw(broker.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'), undefined);
  await stopped(broker);
});

it('9.3 over TLS a slow reader stalls and goes on, and a resume is whole (I1, I2, I7)', async () => {
  const broker = await start('--retention-bytes', '24MiB');
  const port = await plainFront(broker.port, readFileSync(first.cert, 'utf8'));
  const slow = await SseSubscription.open(port, 's', { keepEvents: false });
  const { epoch } = await publish(port, 's', 'first');
  slow.stall();
  const line = 'x'.repeat(10_000);
  for (let batch = 0; batch < 16; batch++)
    await publishLines(
      port,
      's',
      range(1, 100).map(() => line),
    );
  slow.unstall();
  await slow.untilSeq(1601);
  assert.equal(slow.eventCount, 1601);
  slow.cut();
  const resumed = await SseSubscription.open(port, 's', { lastEventId: `${epoch}.801` });
  await resumed.untilSeq(1601);
  assert.deepEqual(resumed.seqs, range(802, 1601));
  resumed.cut();
  await stopped(broker);
});

it('9.3 SIGHUP takes the renewed certificate for new connections, and keeps those that are open', async () => {
  const [cert, key] = [files.write('live.crt', ''), files.write('live.key', '')];
  const install = (from: { cert: string; key: string }): void => {
    copyFileSync(from.cert, cert);
    copyFileSync(from.key, key);
  };
  install(first);
  const broker = await BrokerProcess.start('--tls-cert-file', cert, '--tls-key-file', key, '--threads', '2');
  const port = await plainFront(broker.port, readFileSync(first.cert, 'utf8'));
  const open = await SseSubscription.open(port, 's');
  assert.equal(await nameOf(broker.port), 'first');

  copyFileSync(second.cert, cert);
  broker.signal('SIGHUP');
  const refusal = await broker.until('not reloaded');
  assert.match(String(refusal.reason), /live\.key: .*mismatch/);
  assert.equal(await nameOf(broker.port), 'first');

  install(second);
  broker.signal('SIGHUP');
  await broker.until('reloaded');
  for (let seen = 0; seen < 10; seen++) {
    await eventually('the renewed one', async () => (await nameOf(broker.port)) === 'second');
  }
  const renewed = await plainFront(broker.port, readFileSync(second.cert, 'utf8'));
  await publish(renewed, 's', 'after');
  await open.untilEvents(1);
  assert.deepEqual(open.data, ['after']);
  assert.equal((await stateOf(renewed, 's')).subscribers, 1);
  open.cut();
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
});

it('9.3 a certificate that cannot be used is one line and exit code 1', async () => {
  const text = files.write('text.pem', 'text');
  for (const [cert, key, message] of [
    [text, first.key, /text\.pem: /],
    [first.cert, text, /text\.pem: /],
    [first.cert, second.key, /second\.key: .*mismatch/],
    ['/nowhere.pem', first.key, /nowhere\.pem/],
  ] as const) {
    await assert.rejects(BrokerProcess.start('--tls-cert-file', cert, '--tls-key-file', key), message);
  }
  await assert.rejects(
    BrokerProcess.start('--tls-cert-file', first.cert),
    /tls-cert-file: alone, expected tlsKeyFile/,
  );
});

it('9.3 who never finishes the handshake, or sends no TLS, takes nothing from others', async () => {
  const broker = await start();
  const port = await plainFront(broker.port, readFileSync(first.cert, 'utf8'));
  const idle = await Promise.all(range(1, 200).map(() => HttpConnection.open(broker.port)));
  for (const connection of idle) connection.send(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
  const garbage = await HttpConnection.open(broker.port);
  garbage.send(Buffer.alloc(10_000, 0xff));
  await withDeadline('garbage to be cut off', garbage.closed);
  await publish(port, 's', 'one');
  assert.equal((await request(port, { path: '/healthz' })).status, 200);
  // While they are still there.
  await stopped(broker);
  for (const connection of idle) connection.destroy();
});

it('9.3 what comes without a descriptor left is closed at once, and the broker and its subscribers go on', async () => {
  const flags = ['--tls-cert-file', first.cert, '--tls-key-file', first.key];
  const broker = await BrokerProcess.launch({ flags, descriptorsMax: 300 });
  const port = await plainFront(broker.port, readFileSync(first.cert, 'utf8'));
  const operator = await HttpConnection.open(port);
  const subscription = await SseSubscription.open(port, 's');
  const idle = await Promise.all(range(1, 400).map(() => HttpConnection.open(broker.port)));
  for (const connection of idle) connection.send(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
  await eventually('some to be closed', async () => {
    const { text } = await operator.request({ path: '/metrics' });
    return total(parseMetrics(text), METRIC.connectionsDropped) > 0;
  });
  await publish(operator, 's', 'meanwhile');
  await subscription.untilEvents(1);
  for (const connection of idle) connection.destroy();
  await eventually('newcomers to come in', () =>
    request(port, { path: '/healthz' }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  subscription.cut();
  operator.destroy();
  await stopped(broker);
});

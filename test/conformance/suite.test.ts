import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type SuiteBroker, useBroker } from '../support/broker-process.js';
import { useDurableBroker } from '../support/durable-broker.js';
import { request } from '../support/http.js';
import { NATS_SKIP } from '../support/nats-server.js';
import { useSharedBroker } from '../support/replicated-brokers.js';
import { Files, Issuer, keySetOf } from '../support/tokens.js';
import { runConformance } from './run-conformance.js';

const HEARTBEAT = ['--heartbeat-interval-ms', '1s'];
/** What no server can be asked without breaking its disk, and what it would take, must be said. */
const SKIPPED_EVERYWHERE = ['3.6', '3.6', '9.1'];

/** Each set-up that the contract must hold in, the checks that cannot be made there, and what it is skipped for. */
const SETUPS: [name: string, broker: () => SuiteBroker, skipped: string[], skip?: string | false][] = [
  ['a broker in memory', () => useBroker(...HEARTBEAT), []],
  ['three edges', () => useBroker('--threads', '3', ...HEARTBEAT), []],
  ['a durable log', () => useDurableBroker(...HEARTBEAT), []],
  [
    'a durable log, three edges and rings so small that subscribers read from the log',
    () => useDurableBroker('--threads', '3', '--ring-bytes', '64KiB', ...HEARTBEAT),
    [],
  ],
  ['a shared log', () => useSharedBroker(1, ...HEARTBEAT), [], NATS_SKIP],
  ['a shared log that NATS servers replicate', () => useSharedBroker(3, ...HEARTBEAT), [], NATS_SKIP],
  ['--no-auto-create', () => useBroker('--no-auto-create', ...HEARTBEAT), ['2.4']],
];

for (const [name, start, skipped, skip = false] of SETUPS) {
  describe(`the conformance suite against ${name}`, { skip }, () => {
    const broker = start();

    it('passes every check, skips with a reason what cannot be asked, and leaves no stream behind', async () => {
      const { code, report } = await runConformance(broker.port);
      const failed = report.results.filter(({ outcome }) => outcome === 'failed');
      assert.deepEqual(failed, []);
      assert.equal(code, 0);
      const skips = report.results.filter(({ outcome }) => outcome === 'skipped');
      assert.deepEqual(
        skips.map(({ section }) => section),
        [...skipped, ...SKIPPED_EVERYWHERE],
      );
      for (const { reason } of skips) assert.match(reason ?? '', /needs/);
      assert.ok(report.passed > 90, `only ${report.passed} checks`);
      const list = await request(broker.port, { path: '/v1/streams?prefix=conformance-' });
      assert.deepEqual(list.json<{ streams: unknown[] }>().streams, []);
    });
  });
}

describe('the conformance suite against a broker with keys', async () => {
  const issuer = await Issuer.create('ES256');
  const broker = useBroker('--jwt-keys-file', new Files().write('keys.json', keySetOf(issuer)), ...HEARTBEAT);

  it('passes every check of security with a token', async () => {
    const token = await issuer.grant({ publish: ['*'], subscribe: ['*'], admin: true });
    const { report } = await runConformance(broker.port, '--token', token, '--only', '9');
    assert.deepEqual([report.passed, report.failed, report.skipped], [3, 0, 0]);
  });
});

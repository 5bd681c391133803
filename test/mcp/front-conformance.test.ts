import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conformanceServer } from './conformance-server.js';
import { runConformanceSuite, type SuiteCheck, verdictOf } from './conformance-suite.js';
import { startFront } from './front.js';
import { PEERS_MISSING, peerFile, startPeer } from './peers.js';
import { SdkServer } from './sdk-server.js';

describe('the official conformance suite', { skip: PEERS_MISSING }, () => {
  it('passes through the front whatever it passes without, for a server that has no event store', async (context) => {
    const server = await SdkServer.start({ version: 1, serverOf: conformanceServer });
    context.after(() => server.stop());
    const { urlOf } = await startFront(context, { '/mcp': server.url });
    const [direct, through] = await Promise.all(
      [server.url, urlOf('/mcp')].map((url) => runConformanceSuite(url)),
    );
    assert.ok(direct !== undefined && through !== undefined);
    assert.ok(direct.size >= 32, `${direct.size} scenarios`);
    assert.deepEqual([...through.keys()].sort(), [...direct.keys()].sort());
    for (const [scenario, checks] of direct) {
      if (verdictOf(checks) === 'passed') assert.equal(verdictOf(through.get(scenario)), 'passed', scenario);
    }
    // The server itself cannot do these.
    assert.notEqual(verdictOf(direct.get('server-sse-polling')), 'passed');
    assert.notEqual(verdictOf(direct.get('dns-rebinding-protection')), 'passed');
    for (const scenario of [
      'server-sse-polling',
      'server-sse-multiple-streams',
      'dns-rebinding-protection',
    ]) {
      assert.equal(verdictOf(through.get(scenario)), 'passed', scenario);
    }
  });

  it('finds nothing in server-everything behind the front that it does not find without', async (context) => {
    const { url, stop } = await startPeer([peerFile('everything'), 'streamableHttp']);
    context.after(stop);
    const { urlOf } = await startFront(context, { '/mcp': url });
    const [direct, through] = await Promise.all([url, urlOf('/mcp')].map((url) => runConformanceSuite(url)));
    assert.ok(direct !== undefined && through !== undefined);
    for (const [scenario, checks] of direct) {
      const still = passedIn(through.get(scenario));
      const lost = passedIn(checks).filter((id) => !still.includes(id));
      assert.deepEqual(lost, [], scenario);
    }
  });
});

function passedIn(checks: readonly SuiteCheck[] = []): string[] {
  return checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id);
}

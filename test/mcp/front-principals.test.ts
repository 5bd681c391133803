import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { request } from '../support/http.js';
import { initializeRequest, McpClient, messagesOf } from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { scrape, total } from '../support/prometheus.js';
import { bearer, Files, Issuer, keySetOf } from '../support/tokens.js';

const files = new Files();
const issuer = await Issuer.create('EdDSA');
const keysFile = files.write('keys.json', keySetOf(issuer));
const upstream = await McpUpstream.start();
after(() => upstream.stop());

const tokenOf = (sub: string, publish = ['mcp:files']) => issuer.grant({ publish }, { sub });

describeOnEdges(
  '9.1 principals',
  ['--jwt-keys-file', keysFile, '--mcp', `/files=${upstream.url}`],
  (broker) => {
    const open = async (sub: string) =>
      McpClient.open(broker.port, { path: '/files', headers: bearer(await tokenOf(sub)) });

    it('9.1 nobody calls without a token, or without the right to the server', async () => {
      const initialize = async (headers: Record<string, string>) =>
        request(broker.port, initializeRequest({ path: '/files', headers }));
      const nobody = await initialize({});
      assert.equal(nobody.status, 401);
      assert.equal(nobody.header('www-authenticate'), 'Bearer');
      assert.equal((await initialize(bearer(await tokenOf('a', ['mcp:other'])))).status, 403);
      assert.equal((await initialize(bearer(await tokenOf('a', ['mcp:*'])))).status, 200);
    });

    it('12.1 (7) the session of somebody else is as good as none, with a good id of theirs too', async () => {
      const alice = await open('alice');
      const call = await alice.call(1);
      const there = await upstream.nextCall();
      await call.untilEvents(1);
      const asMallory = bearer(await tokenOf('mallory'));
      assert.equal((await alice.post({ jsonrpc: '2.0', id: 2, method: 'ping' }, asMallory)).status, 404);
      assert.equal((await alice.get(call.lastEventId, asMallory)).status, 404);
      assert.equal((await alice.get(undefined, asMallory)).status, 404);
      const gone = await request(broker.port, {
        method: 'DELETE',
        path: '/files',
        headers: { ...alice.headers, ...asMallory },
      });
      assert.equal(gone.status, 404);
      const mallory = await open('mallory');
      assert.equal((await mallory.get(call.lastEventId)).status, 400, 'an id of another principal');
      there.json({ ok: true });
      await call.untilEnded();
      assert.deepEqual(messagesOf(call)[0]?.result, { ok: true });
    });

    it('12.1 a new token of the same subject goes on with the session', async () => {
      const alice = await open('alice');
      const answer = await alice.post({ jsonrpc: '2.0', method: 'ping' }, bearer(await tokenOf('alice')));
      assert.equal(answer.status, 202);
    });

    it('12.1 what somebody shows to the front stays there', async () => {
      const alice = await open('alice');
      const call = await alice.call(1);
      const there = await upstream.nextCall();
      assert.equal(there.header('authorization'), '');
      assert.equal(there.header('mcp-session-id'), upstream.sessionId);
      there.json({});
      await call.untilEnded();
    });
  },
);

const withUser = upstream.url.replace('//', '//front:pass%20word@');

describeOnEdges('12.1 a user', ['--jwt-keys-file', keysFile, '--mcp', `/files=${withUser}`], (broker) => {
  it('12.1 in the URL of a server is shown to it, where what the client shows stays at the front', async () => {
    const alice = await McpClient.open(broker.port, {
      path: '/files',
      headers: bearer(await tokenOf('alice')),
    });
    const call = await alice.call(1);
    const there = await upstream.nextCall();
    const basic = Buffer.from('front:pass word').toString('base64');
    assert.equal(there.header('authorization'), `Basic ${basic}`);
    there.json({});
    await call.untilEnded();
  });
});

describeOnEdges('12.1 without keys', ['--mcp', `/mcp=${upstream.url}`], (broker) => {
  it('12.1 the server gets the headers of the client, but for those between the front and it', async () => {
    const headers = { Authorization: 'Bearer for-the-server', 'X-Tenant': 'seven', Cookie: 'a=b' };
    const client = await McpClient.open(broker.port, { headers });
    const call = await client.call(1);
    const there = await upstream.nextCall();
    assert.equal(there.header('authorization'), 'Bearer for-the-server');
    assert.equal(there.header('x-tenant'), 'seven');
    assert.equal(there.header('cookie'), '');
    assert.equal(there.header('mcp-protocol-version'), '2025-11-25');
    there.json({});
    await call.untilEnded();
  });

  it('12.6 a server that wants the client to authorize is heard', async () => {
    upstream.intercept = (exchange) => {
      exchange.answer(
        401,
        { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'who?' } },
        {
          'WWW-Authenticate': 'Bearer resource_metadata="https://example.com/x"',
        },
      );
      return true;
    };
    const answer = await request(broker.port, initializeRequest({}));
    upstream.intercept = () => false;
    assert.equal(answer.status, 401);
    assert.equal(answer.header('www-authenticate'), 'Bearer resource_metadata="https://example.com/x"');
    assert.equal(answer.json<{ error: { message: string } }>().error.message, 'who?');
    assert.equal(answer.header('mcp-session-id'), undefined);
  });

  it('12.6 a server that takes a token no longer is heard in the midst of a session, and what goes on shows the new one', async () => {
    upstream.listens = true;
    const client = await McpClient.open(broker.port, { headers: { Authorization: 'Bearer old' } });
    const own = await client.read();
    const listened = (await upstream.nextListener()).stream();
    assert.equal(listened.header('authorization'), 'Bearer old');
    const refused = client.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
    const there = await upstream.nextCall();
    // Longer than an answer is waited for where nobody has to be told by the status, and far less than here (12.2).
    await new Promise((resolve) => setTimeout(resolve, 20));
    there.answer(401, '', { 'WWW-Authenticate': 'Bearer error="invalid_token"' });
    const answer = await refused;
    assert.equal(answer.status, 401);
    assert.equal(answer.header('www-authenticate'), 'Bearer error="invalid_token"');

    const renewed = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} };
    const again = client.post(renewed, { Authorization: 'Bearer new' });
    (await upstream.nextCall()).json({ ok: true });
    assert.equal((await again).status, 200);
    listened.raw('retry: 1\n\n').response.end();
    const next = await upstream.nextListener();
    assert.equal(next.header('authorization'), 'Bearer new');
    next.response.end();
    own.cut();
    upstream.listens = false;
    assert.equal(total(await scrape(broker.port), 'gapless_mcp_calls_under_way'), 0);
  });
});

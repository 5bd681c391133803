import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeOnEdges } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import { freshStream, publishRequest } from '../support/gapless-client.js';
import { request } from '../support/http.js';
import { bearer, Files, Issuer, keySetOf, nowSeconds } from '../support/tokens.js';
import { type LiveMessage, LiveSocket } from '../support/websocket-client.js';

const files = new Files();
const issuer = await Issuer.create('ES256');
const stranger = await Issuer.create('ES256');
const keysFile = files.write('keys.json', keySetOf(issuer));
const READ = { subscribe: ['*'] };
const BOTH = { subscribe: ['*'], publish: ['*'] };

describeOnEdges('9.1 WebSockets with tokens', ['--jwt-keys-file', keysFile], (broker) => {
  it('9.1 one whose token was never seen is as good as any other, and stays', async () => {
    const stream = freshStream('never-seen');
    const sockets: LiveSocket[] = [];
    // Each is verified off the loop. Some were cut when the handshake waited for that.
    for (const n of range(1, 60)) {
      const token = await issuer.grant(READ, { sub: `reader ${n}` });
      sockets.push(await LiveSocket.open(broker.port, stream, { headers: bearer(token) }));
    }
    const token = await issuer.grant(BOTH);
    const asked = publishRequest(stream, 'one');
    await request(broker.port, { ...asked, headers: { ...asked.headers, ...bearer(token) } });
    for (const socket of sockets) {
      await socket.untilSeq(1);
      assert.ok(!socket.isClosed);
      socket.cut();
    }
  });

  it('9.1 what is wrong with a token is told by a message and close code 4401 or 4403, which a page can see', async () => {
    const stream = freshStream('refused');
    for (const [headers, closeCode, code, reason] of [
      [{}, 4401, 'unauthorized', 'missing'],
      [{ Authorization: 'Basic x' }, 4401, 'unauthorized', 'scheme'],
      [bearer('x.y.z'), 4401, 'unauthorized', 'malformed'],
      [bearer(await stranger.grant(BOTH)), 4401, 'unauthorized', 'unknown_key'],
      [bearer(await issuer.grant(BOTH, { exp: nowSeconds() - 60 })), 4401, 'unauthorized', 'expired'],
      [bearer(await issuer.grant({ publish: ['*'] })), 4403, 'forbidden', undefined],
      [bearer(await issuer.grant({ subscribe: ['other-*'] })), 4403, 'forbidden', undefined],
    ] as const) {
      const socket = LiveSocket.connect(broker.port, stream, { headers });
      assert.equal(await socket.untilClosed(), closeCode, reason);
      const [said] = socket.messages as [LiveMessage];
      assert.deepEqual(
        [said.kind, said.code, said.reason, socket.closeReason],
        ['error', code, reason, code],
      );
      assert.equal(socket.messages.length, 1);
    }
  });

  it('9.1 to publish takes its own right, also of who speaks before it is known who that is', async () => {
    const stream = freshStream('rights');
    const atOnce = [{ kind: 'publish', ref: 1, events: [{ data: 'x' }] }];
    for (const [grant, kind] of [
      [BOTH, 'published'],
      [READ, 'error'],
      [{ subscribe: ['*'], publish: ['other'] }, 'error'],
    ] as const) {
      const socket = LiveSocket.connect(broker.port, stream, {
        headers: bearer(await issuer.grant(grant)),
        atOnce,
      });
      const answer = await socket.untilAnswered(1);
      assert.deepEqual([answer.kind, answer.code], [kind, kind === 'error' ? 'forbidden' : undefined]);
      socket.cut();
    }
    const nobody = LiveSocket.connect(broker.port, stream, { headers: bearer('x.y.z'), atOnce });
    assert.equal(await nobody.untilClosed(), 4401);
    const token = await issuer.grant(BOTH);
    const page = await request(broker.port, { path: `/v1/streams/${stream}`, headers: bearer(token) });
    assert.equal(page.json<{ events: unknown[] }>().events.length, 1);
  });
});

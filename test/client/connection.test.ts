import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient } from '#gapless/client/client.js';
import { ScriptedServer } from './scripted-server.js';

describe('where the client is told that the broker is', () => {
  for (const url of [
    'localhost:8080',
    '127.0.0.1:8080',
    '/behind/a/path',
    '',
    'ftp://127.0.0.1',
    'http://127.0.0.1/?tenant=1',
    'http://127.0.0.1/#top',
  ]) {
    it(`"${url}" is refused at once: no request could ever get there`, () => {
      assert.throws(() => new GaplessClient({ url }), TypeError);
    });
  }

  it('a user and a password are refused, and are not said again', () => {
    assert.throws(
      () => new GaplessClient({ url: 'https://somebody:secret@broker.example' }),
      ({ message }: Error) => !message.includes('secret') && message.includes('token'),
    );
  });

  it('a path in front of those of the contract is kept, with or without its last slash', async () => {
    const server = await ScriptedServer.start((_request, response) => void response.writeHead(204).end());
    for (const url of [`${server.url}/events`, `${server.url}/events/`, new URL(server.url)])
      await new GaplessClient({ url }).deleteStream('s');
    assert.deepEqual(
      server.requests.map(({ url }) => url),
      ['/events/v1/streams/s', '/events/v1/streams/s', '/v1/streams/s'],
    );
    await server.stop();
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { GaplessClient } from '#gapless/client/client.js';
import { GaplessEventStore } from '#gapless/mcp-sdk/mcp-sdk.js';
import { startEmbeddedBroker } from '#gapless/server/embedded-broker.js';
import { resultText } from './counting-tool.js';
import { RawSession } from './raw-session.js';
import { SdkServer } from './sdk-server.js';

describe('a broker within a program', () => {
  it('is behind an event store like any other', async (context) => {
    const broker = await startEmbeddedBroker();
    context.after(() => broker.stop());
    const client = new GaplessClient({ url: broker.url });
    const server = await SdkServer.start({
      version: 2,
      storeOf: (session) => new GaplessEventStore({ broker: client, session }),
    });
    context.after(() => server.stop());
    const session = await RawSession.open(server.url);
    const answer = await session.call(1, 'count', { label: 'embedded', steps: 9, holdAfter: 4 });
    await answer.count(4);
    answer.cut();
    server.gates.open('embedded');
    const resumed = await session.get(answer.lastEventId);
    const { result } = await resumed.result(1);
    assert.deepEqual(result?.content, [{ type: 'text', text: resultText('embedded', 9) }]);
    assert.equal(resumed.messages.length, 6);
    resumed.cut();
  });

  it('keeps what it has in a data directory, and starts and stops as often as one likes', async (context) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gapless-embedded-'));
    context.after(() => rm(dataDir, { recursive: true }));
    for (let n = 1; n <= 3; n++) {
      const broker = await startEmbeddedBroker({ dataDir });
      const { cursor } = await new GaplessClient({ url: broker.url }).publish('kept', `${n}`);
      assert.ok(cursor.endsWith(`.${n}`), cursor);
      await broker.stop();
    }
  });

  it('refuses settings that are not good, all at once', async () => {
    await assert.rejects(startEmbeddedBroker({ port: -1, colour: 'red' }), (error: Error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, /port/);
      assert.match(error.message, /colour/);
      return true;
    });
  });
});

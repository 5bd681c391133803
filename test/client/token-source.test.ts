import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GaplessClient, type GaplessError } from '#gapless/client/client.js';
import { answers, ScriptedServer, streamsAndEnds } from './scripted-server.js';

const EPOCH = 'abcdefgh01';
const WHOLE = [
  `id: ${EPOCH}.0`,
  `id: ${EPOCH}.1\ndata: one`,
  `event: stream_closed\ndata: {"cursor":"${EPOCH}.1"}`,
];

describe('what gives the client its tokens', () => {
  it('has the time of an answer, and who has aborted does not wait for it', async () => {
    const server = await ScriptedServer.start(answers(204, null));
    const never = (): Promise<string> => new Promise(() => undefined);
    const client = new GaplessClient({ url: server.url, token: never, answerTimeoutMs: 50 });
    await assert.rejects(client.state('s'), { code: 'unreachable', message: 'no answer in 50 ms' });
    const aborting = new AbortController();
    const next = client.subscribe('s', { signal: aborting.signal })[Symbol.asyncIterator]().next();
    aborting.abort(new Error('enough'));
    await assert.rejects(next, { message: 'enough' });
    assert.equal(server.requests.length, 0);
    await server.stop();
  });

  it('may end its token with a line break, as a file does, and is told of one that cannot be a token', async () => {
    const server = await ScriptedServer.start(answers(204, null));
    await new GaplessClient({ url: server.url, token: 'good\n' }).deleteStream('s');
    assert.equal(server.requests[0]?.headers.authorization, 'Bearer good');
    const wrong = new GaplessClient({ url: server.url, token: 'good\n€' });
    const refusal = { code: 'unauthorized', status: 401, problem: { reason: 'malformed' } };
    await assert.rejects(wrong.publish('s', 'one'), refusal);
    await assert.rejects(wrong.subscribe('s')[Symbol.asyncIterator]().next(), refusal);
    assert.equal(server.requests.length, 1);
    await server.stop();
  });

  it('is asked again where it fails, as a broker that is not reached, and says why', async () => {
    const server = await ScriptedServer.start(streamsAndEnds(WHOLE));
    const offline = new Error('the issuer is away');
    let asked = 0;
    const token = (): string => {
      if (++asked % 3 !== 0) throw offline;
      return 'good';
    };
    const client = new GaplessClient({ url: server.url, token });
    await assert.rejects(client.state('s'), (error: GaplessError) => {
      assert.deepEqual([error.code, error.message], ['unreachable', 'there is no token to ask with']);
      return error.cause === offline;
    });
    const seen: string[] = [];
    for await (const { data } of client.subscribe('s', { cursor: 'earliest', retryMs: 1 })) seen.push(data);
    assert.deepEqual([seen, asked], [['one'], 3]);
    await server.stop();
  });
});

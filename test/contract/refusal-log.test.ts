import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { assertProblem, freshStream, publish, publishRequest } from '../support/gapless-client.js';
import { HttpConnection, type HttpResponse, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';
import { bearer, Files, Issuer, keySetOf } from '../support/tokens.js';

const files = new Files();
const issuer = await Issuer.create('HS256');

describe('8 refusals in the log', () => {
  const broker = useBroker('--jwt-keys-file', files.write('keys.json', keySetOf(issuer)));

  async function lineOf(response: HttpResponse): Promise<Record<string, unknown>> {
    const number = response.header('gapless-request');
    assert.match(number ?? '', /^[a-z0-9]+-[a-z0-9]+$/);
    return eventually('the line of a refusal', () =>
      broker.process.log.find((line) => line.request === number),
    );
  }

  it('8 each has one line, with the number that the client was given, and with floor, head and cursor', async () => {
    const stream = freshStream('logged');
    const headers = bearer(await issuer.grant({ publish: [stream], subscribe: [stream] }, { sub: 'user-7' }));
    const { epoch } = await publish(broker.port, stream, 'one', undefined, headers);
    const asked = await SseSubscription.ask(broker.port, stream, { lastEventId: `${epoch}.9`, headers });
    const resume = await asked.refusal();
    assertProblem(resume, 410, 'resume_unavailable');
    const { code, reason, floor, head, cursor, principal, stream: named } = await lineOf(resume);
    assert.deepEqual(
      { code, reason, floor, head, cursor, principal, named },
      {
        code: 'resume_unavailable',
        reason: 'ahead_of_head',
        floor: 1,
        head: 1,
        cursor: `${epoch}.9`,
        principal: 'user-7',
        named: stream,
      },
    );
    const line = await lineOf(
      await request(broker.port, publishRequest('other', 'x', 'text/plain', headers)),
    );
    assert.deepEqual([line.code, line.status, line.stream], ['forbidden', 403, 'other']);
  });

  it('8 neither credentials nor data are in it, wherever they were sent', async () => {
    const token = await issuer.grant({ publish: ['a'] });
    const secret = 'a-secret-in-the-data';
    const attempts = [
      publishRequest('b', secret, 'text/plain', bearer(token)),
      publishRequest('a', `{"${secret}"`, 'application/vnd.gapless.batch+json', bearer(token)),
      { path: `/v1/streams/a?access_token=${token}` },
      { path: '/v1/streams/a', headers: { Authorization: `Basic ${secret}` } },
    ];
    for (const attempt of attempts) await lineOf(await request(broker.port, attempt));
    const log = JSON.stringify(broker.process.log);
    for (const word of [token, token.slice(0, 20), secret]) assert.ok(!log.includes(word), word);
  });

  it('8 a flood of refusals is counted, and not written line by line', async () => {
    const before = broker.process.log.length;
    const connection = await HttpConnection.open(broker.port);
    for (let count = 0; count < 500; count++) {
      assert.equal((await connection.request({ path: '/v1/streams' })).status, 401);
    }
    await eventually('the sum of what was not written', async () => {
      await connection.request({ path: '/v1/streams' });
      return broker.process.log.some(({ msg }) => msg === 'refusals not logged');
    });
    assert.ok(broker.process.log.length - before < 500);
    connection.destroy();
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BrokerProcess, describeOnEdges, useBroker } from '../support/broker-process.js';
import { eventually } from '../support/deadline.js';
import { assertProblem, freshStream, publish, publishRequest } from '../support/gapless-client.js';
import { HttpConnection, type HttpRequest, request } from '../support/http.js';
import { parseMetrics, total } from '../support/prometheus.js';
import { SseSubscription } from '../support/sse-client.js';
import { type Algorithm, apiKey, bearer, Files, Issuer, keySetOf, nowSeconds } from '../support/tokens.js';

const ALGORITHMS: readonly Algorithm[] = ['HS256', 'RS256', 'ES256', 'EdDSA'];
const ALL = { publish: ['*'], subscribe: ['*'], admin: true };

const files = new Files();
const issuers = await Promise.all(ALGORITHMS.map((algorithm) => Issuer.create(algorithm)));
const [issuer] = issuers as [Issuer];
const ci = apiKey('ci', { publish: ['jobs-*'], metrics: true });
const keysFile = files.write('keys.json', keySetOf(...issuers));
const apiKeysFile = files.write('api-keys.json', JSON.stringify({ apiKeys: [ci.entry] }));

/** Every route of a stream, with the right that it needs. */
function routesOf(stream: string): [string, HttpRequest][] {
  const path = `/v1/streams/${stream}`;
  return [
    ['publish', publishRequest(stream, 'x')],
    ['subscribe', { path, headers: { Accept: 'text/event-stream' } }],
    ['subscribe', { path, headers: { Accept: 'application/json' } }],
    ['inspect', { path: `${path}/state` }],
    ['inspect', { method: 'HEAD', path }],
    ['admin', { method: 'PUT', path, body: '{}' }],
    ['admin', { path: '/v1/streams' }],
    ['publish', { method: 'POST', path: `${path}/close` }],
    ['admin', { method: 'DELETE', path }],
  ];
}

function withToken(asked: HttpRequest, token: string): HttpRequest {
  return { ...asked, headers: { ...asked.headers, ...bearer(token) } };
}

/** The status of an answer, whose body may never end. */
async function statusOf(port: number, asked: HttpRequest): Promise<number> {
  if (asked.headers?.Accept !== 'text/event-stream') return (await request(port, asked)).status;
  const stream = asked.path.split('/').at(-1) ?? '';
  const subscription = await SseSubscription.ask(port, stream, { headers: asked.headers });
  subscription.cut();
  return subscription.status;
}

describeOnEdges('9.1 tokens', ['--jwt-keys-file', keysFile, '--api-keys-file', apiKeysFile], (broker) => {
  it('9.1 without a token every route of a stream is 401 unauthorized, and says how to authenticate', async () => {
    for (const [, asked] of routesOf(freshStream('closed'))) {
      const response = await request(broker.port, asked);
      assert.equal(response.header('www-authenticate'), 'Bearer', asked.path);
      if (asked.method === 'HEAD') assert.equal(response.status, 401);
      else assert.equal(assertProblem(response, 401, 'unauthorized').reason, 'missing');
    }
  });

  it('9.1 what is no secret answers without a token', async () => {
    for (const path of ['/healthz', '/readyz', '/'])
      assert.equal((await request(broker.port, { path })).status, 200);
    assert.equal((await request(broker.port, { method: 'OPTIONS', path: '/v1/streams/x' })).status, 204);
    assertProblem(await request(broker.port, { path: '/nothing' }), 404, 'not_found');
  });

  it('9.1, 4.10 several streams at once are open to who may read each of them', async () => {
    const token = await issuer.grant({ subscribe: ['news-*'] });
    const headers = { Accept: 'text/event-stream', ...bearer(token) };
    const path = '/v1/streams?stream=news-1&stream=';
    for (const _time of ['when the token is new', 'and when it is known']) {
      assertProblem(await request(broker.port, { path: `${path}other`, headers }), 403, 'forbidden');
    }
    const options = { streams: ['news-1', 'news-2'], headers: bearer(token) };
    const both = await SseSubscription.ask(broker.port, '', options);
    assert.equal(both.status, 200);
    both.cut();
  });

  it('9.1 a token of each algorithm opens all routes that it grants', async () => {
    for (const each of issuers) {
      const token = await each.grant(ALL);
      for (const [, asked] of routesOf(freshStream('open'))) {
        const status = await statusOf(broker.port, withToken(asked, token));
        assert.ok(status < 300, `${each.algorithm} ${asked.method ?? 'GET'} ${asked.path}: ${status}`);
      }
    }
  });

  it('9.1 a token opens what it grants, and what it does not grant is 403 forbidden', async () => {
    const stream = freshStream('rights');
    await publish(broker.port, stream, 'one', undefined, bearer(await issuer.grant(ALL)));
    const opened: Record<string, readonly string[]> = {
      publish: ['publish', 'inspect'],
      subscribe: ['subscribe', 'inspect'],
      admin: ['admin', 'inspect'],
      nothing: [],
    };
    for (const [claim, rights] of Object.entries(opened)) {
      const token = await issuer.grant({ [claim]: claim === 'admin' ? true : [`${stream}*`] });
      // In front of the close and the deletion, which would change what the others see.
      for (const [right, asked] of routesOf(stream).slice(0, 6)) {
        const status = await statusOf(broker.port, withToken(asked, token));
        const isOpen = rights.includes(right);
        assert.equal(
          status === 403,
          !isOpen,
          `${claim}: ${asked.method ?? 'GET'} ${asked.path} is ${status}`,
        );
      }
    }
    const denied = await request(broker.port, withToken(publishRequest(stream, 'x'), await issuer.sign({})));
    assertProblem(denied, 403, 'forbidden');
  });

  it('9.1 a right to one stream is none to another', async () => {
    const token = await issuer.grant({ publish: ['jobs-7', 'team-a-*'], subscribe: ['jobs-7', 'team-a-*'] });
    for (const stream of [
      'jobs-7',
      'team-a-',
      'team-a-x',
      'jobs-77',
      'jobs-',
      'Jobs-7',
      'team-ab',
      'team-b-x',
    ]) {
      const expected = stream === 'jobs-7' || stream.startsWith('team-a-') ? 200 : 403;
      for (const [, asked] of routesOf(stream).slice(0, 2)) {
        assert.equal(
          await statusOf(broker.port, withToken(asked, token)),
          expected,
          `${stream} ${asked.method}`,
        );
      }
    }
  });

  it('9.1 a static key does what its entry says', async () => {
    const allowed = await request(broker.port, withToken(publishRequest('jobs-1', 'x'), ci.key));
    assert.equal(allowed.status, 200, allowed.text);
    const other = await request(broker.port, withToken(publishRequest('other', 'x'), ci.key));
    assertProblem(other, 403, 'forbidden');
    const wrong = await request(broker.port, withToken(publishRequest('jobs-1', 'x'), `${ci.key}x`));
    assert.equal(assertProblem(wrong, 401, 'unauthorized').reason, 'unknown_api_key');
  });

  it('9.1 the metrics need a right, and count who was denied', async () => {
    assertProblem(await request(broker.port, { path: '/metrics' }), 401, 'unauthorized');
    const response = await request(broker.port, { path: '/metrics', headers: bearer(ci.key) });
    assert.equal(response.status, 200);
    const denied = 'gapless_http_requests_denied_total';
    const metrics = parseMetrics(response.text);
    assert.ok(total(metrics, denied, { reason: 'unauthorized' }) > 0);
    assert.ok(total(metrics, denied, { reason: 'forbidden' }) > 0);
  });

  it('9.1 a first request with a body in pieces is published whole, once the token is verified', async () => {
    const stream = freshStream('pieces');
    const token = await issuer.grant({ publish: [stream] }, { sub: stream });
    const body = 'x'.repeat(100_000);
    const connection = await HttpConnection.open(broker.port);
    connection.send(
      `POST /v1/streams/${stream} HTTP/1.1\r\nHost: x\r\nAuthorization: bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    for (let at = 0; at < body.length; at += 10_000) {
      connection.send(body.slice(at, at + 10_000));
      await new Promise(setImmediate);
    }
    const response = await connection.nextResponse();
    assert.equal(response.status, 200, response.text);
    connection.destroy();
    const read = await issuer.grant({ subscribe: [stream] });
    const page = await request(broker.port, {
      path: `/v1/streams/${stream}`,
      headers: { Accept: 'application/json', ...bearer(read) },
    });
    assert.equal(page.json<{ events: { data: string }[] }>().events[0]?.data, body);
  });

  it('9.1 a connection ends when its token does, properly, and its cursor goes on with another', async () => {
    const stream = freshStream('expiry');
    const all = bearer(await issuer.grant(ALL));
    await publish(broker.port, stream, 'one', undefined, all);
    // Within the tolerance for clocks that differ, so that the end is near.
    const rights = { subscribe: [stream] };
    const short = bearer(await issuer.grant(rights, { sub: stream, exp: nowSeconds() - 1 }));
    const subscription = await SseSubscription.open(broker.port, stream, {
      cursor: 'earliest',
      headers: short,
    });
    await subscription.untilEvents(1);
    const waiting = request(broker.port, {
      path: `/v1/streams/${stream}?cursor=${subscription.lastEventId}&wait=50`,
      headers: { Accept: 'application/json', ...short },
    });
    assert.equal(await subscription.untilEnded(), 'end');
    assert.equal((await waiting).status, 200, 'a page that waits is answered by then');
    await publish(broker.port, stream, 'two', undefined, all);
    const lastEventId = subscription.lastEventId;
    const refused = await SseSubscription.ask(broker.port, stream, { lastEventId, headers: short });
    assert.equal(assertProblem(await refused.refusal(), 401, 'unauthorized').reason, 'expired');
    const again = await SseSubscription.open(broker.port, stream, { lastEventId, headers: all });
    await again.untilEvents(1);
    assert.deepEqual(again.data, ['two']);
    again.cut();
    const scraped = await request(broker.port, { path: '/metrics', headers: all });
    assert.ok(total(parseMetrics(scraped.text), 'gapless_subscribers_expired_total') >= 1);
  });

  it('9.1 a token in the query is not taken', async () => {
    const token = await issuer.grant(ALL);
    const response = await request(broker.port, { path: `/v1/streams?access_token=${token}` });
    assert.equal(assertProblem(response, 401, 'unauthorized').reason, 'missing');
  });
});

describe('9.1 tokens in the query, where the operator allows it', () => {
  const broker = useBroker('--jwt-keys-file', keysFile, '--token-in-query');

  it('9.1 a token in the query is taken, and the header wins', async () => {
    const token = await issuer.grant(ALL);
    const path = `/v1/streams?access_token=${token}`;
    assert.equal((await request(broker.port, { path })).status, 200);
    assert.equal((await request(broker.port, { path })).status, 200, 'also when it is known already');
    const bad = await request(broker.port, { path, headers: bearer('a.b.c') });
    assertProblem(bad, 401, 'unauthorized');
    const twice = await request(broker.port, { path: `${path}&access_token=x` });
    assertProblem(twice, 400, 'invalid_query');
  });
});

describe('9.1 who a token must be from and for', () => {
  const broker = useBroker(
    '--jwt-keys-file',
    keysFile,
    '--jwt-issuer',
    'https://id.example',
    '--jwt-audience',
    'gapless',
  );

  it('9.1 another issuer or audience is 401, with the reason', async () => {
    const good = { iss: 'https://id.example', aud: 'gapless', gapless: ALL };
    const asked = async (claims: object): Promise<string> => {
      const token = await issuer.sign({ ...good, ...claims });
      const response = await request(broker.port, { path: '/v1/streams', headers: bearer(token) });
      return response.status === 200
        ? 'accepted'
        : String(assertProblem(response, 401, 'unauthorized').reason);
    };
    assert.equal(await asked({}), 'accepted');
    assert.equal(await asked({ aud: ['other', 'gapless'] }), 'accepted');
    assert.equal(await asked({ aud: 'other' }), 'audience');
    assert.equal(await asked({ aud: undefined }), 'audience');
    assert.equal(await asked({ iss: 'https://id.example/' }), 'issuer');
    assert.equal(await asked({ iss: undefined }), 'issuer');
    assert.equal(await asked({ nbf: nowSeconds() + 60 }), 'not_yet_valid');
    assert.equal(await asked({ exp: null }), 'claims');
    assert.equal(await asked({ gapless: { admin: 'yes' } }), 'claims');
  });
});

describe('9.1 keys that change', () => {
  it('9.1 SIGHUP takes new keys, ends what was opened with those that are gone, and keeps the rest', async () => {
    const kept = await Issuer.create('ES256');
    const gone = await Issuer.create('ES256');
    const path = files.write('changing.json', keySetOf(kept, gone));
    const broker = await BrokerProcess.start('--jwt-keys-file', path);
    const keptToken = bearer(await kept.grant(ALL));
    const goneToken = bearer(await gone.grant(ALL));
    const staying = await SseSubscription.open(broker.port, 's', { headers: keptToken });
    const leaving = await SseSubscription.open(broker.port, 's', { headers: goneToken });

    files.write('changing.json', '{"keys": "none"}');
    broker.signal('SIGHUP');
    await eventually('the refusal to reload', () => broker.log.some(({ msg }) => msg === 'not reloaded'));
    assert.equal((await request(broker.port, { path: '/v1/streams', headers: goneToken })).status, 200);

    files.write('changing.json', keySetOf(kept));
    broker.signal('SIGHUP');
    assert.equal(await leaving.untilEnded(), 'end');
    assertProblem(
      await request(broker.port, { path: '/v1/streams', headers: goneToken }),
      401,
      'unauthorized',
    );
    await publish(broker.port, 's', 'one', undefined, keptToken);
    await staying.untilEvents(1);
    staying.cut();
    assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  });

  it('9.1 a broken key file is one line and exit code 1, and tells no secret', async () => {
    const path = files.write('broken.json', '{"keys": [{"kty": "oct", "alg": "HS256", "k": "c2VjcmV0"}]}');
    await assert.rejects(BrokerProcess.start('--jwt-keys-file', path), (error: Error) => {
      assert.match(error.message, /broken\.json: keys\[0\]: expected k of 32 bytes or more/);
      assert.doesNotMatch(error.message, /c2VjcmV0/);
      return true;
    });
  });
});

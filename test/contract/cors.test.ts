import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useBroker } from '../support/broker-process.js';
import { freshStream, publish, publishRequest } from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

const ALLOWED = 'https://app.example';
const FOREIGN = 'https://evil.example';

function allowOrigin(response: HttpResponse): string | undefined {
  return response.header('access-control-allow-origin');
}

function preflight(
  port: number,
  stream: string,
  origin: string,
  method: string,
  headers = '',
): Promise<HttpResponse> {
  const asked: Record<string, string> = { Origin: origin, 'Access-Control-Request-Method': method };
  if (headers !== '') asked['Access-Control-Request-Headers'] = headers;
  return request(port, { method: 'OPTIONS', path: `/v1/streams/${stream}`, headers: asked });
}

describe('9.3 CORS by allow-list', () => {
  const broker = useBroker('--cors-origins', ALLOWED);

  it('9.3 an allowed origin may read every answer, also refusals', async () => {
    const stream = freshStream('allowed');
    await publish(broker.port, stream, 'one');
    const headers = { Origin: ALLOWED };
    const answers = [
      await request(broker.port, { path: `/v1/streams/${stream}/state`, headers }),
      await request(broker.port, {
        path: `/v1/streams/${stream}`,
        headers: { ...headers, Accept: 'application/json' },
      }),
      await request(broker.port, publishRequest(stream, 'two', 'text/plain', headers)),
      await request(broker.port, {
        path: `/v1/streams/${stream}`,
        headers: { ...headers, Accept: 'image/png' },
      }),
      await request(broker.port, { path: '/nothing', headers }),
    ];
    for (const response of answers) {
      assert.equal(allowOrigin(response), ALLOWED, `${response.status}`);
      assert.match(response.header('vary') ?? '', /\bOrigin\b/i);
    }
    const refused = await SseSubscription.ask(broker.port, stream, { lastEventId: 'zzzzzzzzzz.1', headers });
    assert.equal(allowOrigin(await refused.refusal()), ALLOWED);
    const subscription = await SseSubscription.open(broker.port, stream, { headers });
    assert.equal(subscription.header('access-control-allow-origin'), ALLOWED);
    subscription.cut();
  });

  it('9.3 the headers of the contract are exposed to the page', async () => {
    const stream = freshStream('exposed');
    const response = await request(
      broker.port,
      publishRequest(stream, 'one', 'text/plain', { Origin: ALLOWED }),
    );
    const exposed = (response.header('access-control-expose-headers') ?? '').toLowerCase();
    for (const name of ['gapless-cursor', 'gapless-epoch', 'gapless-floor', 'gapless-head', 'gapless-next']) {
      assert.ok(exposed === '*' || exposed.includes(name), `${name} is not among ${exposed}`);
    }
  });

  it('9.3 a preflight of an allowed origin is granted what the contract needs', async () => {
    const stream = freshStream('preflight');
    const response = await preflight(
      broker.port,
      stream,
      ALLOWED,
      'PUT',
      'content-type,gapless-event,last-event-id',
    );
    assert.ok(response.status === 204 || response.status === 200, String(response.status));
    assert.equal(allowOrigin(response), ALLOWED);
    const methods = response.header('access-control-allow-methods') ?? '';
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) assert.ok(methods.includes(method), methods);
    const headers = (response.header('access-control-allow-headers') ?? '').toLowerCase();
    for (const name of ['content-type', 'gapless-event', 'gapless-if-head', 'last-event-id']) {
      assert.ok(headers.includes(name), headers);
    }
  });

  it('9.3 another origin is granted nothing', async () => {
    const stream = freshStream('foreign');
    await publish(broker.port, stream, 'one');
    for (const origin of [
      FOREIGN,
      'null',
      `${ALLOWED}.evil.example`,
      'http://app.example',
      `${ALLOWED}:8443`,
    ]) {
      const read = await request(broker.port, {
        path: `/v1/streams/${stream}/state`,
        headers: { Origin: origin },
      });
      assert.equal(allowOrigin(read), undefined, origin);
      const asked = await preflight(broker.port, stream, origin, 'PUT');
      assert.equal(allowOrigin(asked), undefined, origin);
      assert.equal(asked.header('access-control-allow-methods'), undefined);
    }
  });
});

describe('9.3 CORS for all', () => {
  const broker = useBroker('--cors-origins', '*');

  it('9.3 `*` allows every origin', async () => {
    const response = await request(broker.port, { path: '/v1/streams', headers: { Origin: FOREIGN } });
    assert.ok(['*', FOREIGN].includes(allowOrigin(response) ?? ''));
  });
});

describe('9.3 no CORS by default', () => {
  const broker = useBroker();

  it('9.3 without a list no origin is allowed', async () => {
    const response = await request(broker.port, { path: '/v1/streams', headers: { Origin: ALLOWED } });
    assert.equal(allowOrigin(response), undefined);
    assert.equal(response.status, 200);
  });
});

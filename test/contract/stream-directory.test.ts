import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOnEdges, useBroker } from '../support/broker-process.js';
import { range } from '../support/cursor.js';
import {
  assertProblem,
  createStream,
  freshStream,
  publish,
  publishRequest,
  readPage,
  stateOf,
} from '../support/gapless-client.js';
import { type HttpResponse, request } from '../support/http.js';
import { SseSubscription } from '../support/sse-client.js';

const NAME_LENGTH_MAX = 200;

describeOnEdges('2.2 the list of streams', [], (broker) => {
  async function list(query: string): Promise<string[]> {
    const response = await request(broker.port, { path: `/v1/streams?${query}` });
    assert.equal(response.status, 200, response.text);
    return namesIn(response);
  }

  it('2.2 GET lists the streams that begin with `prefix`, and no others', async () => {
    const prefix = freshStream('listed');
    for (const word of ['b', 'a', 'c']) await createStream(broker.port, `${prefix}.${word}`);
    await createStream(broker.port, freshStream('other'));
    assert.deepEqual(
      (await list(`prefix=${prefix}`)).sort(),
      ['a', 'b', 'c'].map((word) => `${prefix}.${word}`),
    );
    assert.deepEqual(await list(`prefix=${freshStream('nothing')}`), []);
  });

  it('2.2 `limit` and `after` walk through all of them, each once', async () => {
    const prefix = freshStream('walked');
    const names = range(10, 34).map((index) => `${prefix}.${index}`);
    await Promise.all(names.map((name) => createStream(broker.port, name)));
    const seen: string[] = [];
    for (;;) {
      const page = await list(`prefix=${prefix}&limit=7${seen.length === 0 ? '' : `&after=${seen.at(-1)}`}`);
      if (page.length === 0) break;
      assert.ok(page.length <= 7);
      seen.push(...page);
      assert.ok(seen.length <= names.length, 'the walk does not end');
    }
    assert.deepEqual(seen, names);
  });

  it('2.2 a limit that is none is 400 invalid_query', async () => {
    for (const limit of ['0', '-1', '1.5', 'x', '', '1e3']) {
      assertProblem(await request(broker.port, { path: `/v1/streams?limit=${limit}` }), 400, 'invalid_query');
    }
  });
});

describeOnEdges('2.4 names', [], (broker) => {
  it('2.4 every allowed character and every length from 1 to 200 makes a name', async () => {
    const names = [
      'A.Z_a~z:0-9',
      '...',
      '-',
      '~',
      '_',
      ':',
      '.a',
      'a..b',
      'state',
      'x'.repeat(NAME_LENGTH_MAX),
    ];
    for (const name of names) {
      await publish(broker.port, name, 'hello');
      assert.equal((await stateOf(broker.port, name)).head, 1, name);
    }
  });

  it('2.4 any other name is 400 invalid_stream_name, for every method, and creates nothing', async () => {
    const names = [
      '.',
      '..',
      'x'.repeat(NAME_LENGTH_MAX + 1),
      'a%20b',
      'a%41',
      '%61',
      'a@b',
      'a+b',
      'ä',
      'a!',
      'a,b',
      '{a}',
    ];
    for (const name of names) {
      const path = `/v1/streams/${name}`;
      for (const asked of [
        publishRequest(name, 'hello'),
        { method: 'PUT', path, body: '{}' },
        { method: 'DELETE', path },
        { path, headers: { Accept: 'text/event-stream' } },
        { path: `${path}/state` },
      ]) {
        assertProblem(await request(broker.port, asked), 400, 'invalid_stream_name');
      }
    }
  });

  it('2.4 names differ by case, and a percent sign is never decoded', async () => {
    const stream = freshStream('case');
    await publish(broker.port, stream, 'lower');
    assertProblem(
      await request(broker.port, { path: `/v1/streams/${stream.toUpperCase()}/state` }),
      404,
      'stream_not_found',
    );
  });

  it('2.4 publishing and subscribing create the stream', async () => {
    const published = freshStream('auto');
    const { first } = await publish(broker.port, published, 'hello');
    assert.equal(first, 1);
    const subscribed = freshStream('auto');
    const subscription = await SseSubscription.open(broker.port, subscribed);
    assert.equal((await stateOf(broker.port, subscribed)).head, 0);
    await publish(broker.port, subscribed, 'first of all');
    await subscription.untilEvents(1);
    assert.deepEqual(subscription.data, ['first of all']);
    subscription.cut();
  });
});

describe('2.4 --no-auto-create', () => {
  const broker = useBroker('--no-auto-create');

  it('2.4 publishing, subscribing and reading answer 404 stream_not_found and create nothing', async () => {
    const stream = freshStream('absent');
    const subscribe = { path: `/v1/streams/${stream}`, headers: { Accept: 'text/event-stream' } };
    for (const asked of [publishRequest(stream, 'hello'), subscribe, subscribe]) {
      assertProblem(await request(broker.port, asked), 404, 'stream_not_found');
    }
    assertProblem(await readPage(broker.port, stream), 404, 'stream_not_found');
    assertProblem(
      await request(broker.port, { path: `/v1/streams/${stream}/state` }),
      404,
      'stream_not_found',
    );
  });

  it('2.4 a stream that was created is used as ever', async () => {
    const stream = freshStream('created');
    await createStream(broker.port, stream);
    const subscription = await SseSubscription.open(broker.port, stream);
    await subscription.untilPrimed();
    await publish(broker.port, stream, 'hello');
    await subscription.untilEvents(1);
    subscription.cut();
  });
});

function namesIn(response: HttpResponse): string[] {
  return response.json<{ streams: { name: string }[] }>().streams.map(({ name }) => name);
}

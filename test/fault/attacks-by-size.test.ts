import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asOperator, mallory, useAttackedBroker } from '../support/attacked-broker.js';
import { range } from '../support/cursor.js';
import { MEDIA_TYPES } from '../support/gapless-client.js';
import { exchangeRaw, request } from '../support/http.js';

describe('attacks by size', () => {
  const broker = useAttackedBroker(
    ...['--event-bytes-max', '4KiB', '--body-bytes-max', '64KiB', '--batch-events-max', '100'],
  );
  const get = (path: string, headers = ''): string =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${mallory.key}\r\n${headers}\r\n`;
  const post = (headers: string, body = 'x'): string =>
    `POST /v1/streams/own HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mallory.key}\r\n${headers}\r\n${body}`;
  const many = (count: number): string => range(1, count).join(',');
  const ofType = (type: string, body: string): string =>
    post(`Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n`, body);

  const ROWS: readonly (readonly [attack: string, bytes: string, got: string])[] = [
    ['a name of 201 characters', get(`/v1/streams/${'o'.repeat(201)}`), 'invalid_stream_name'],
    ['a name of 20000 characters', get(`/v1/streams/${'o'.repeat(20_000)}`), 'invalid_stream_name'],
    ['a header of 1 MB', get('/v1/streams/own', `X: ${'a'.repeat(1_000_000)}\r\n`), '431 or closed'],
    ['200 headers', get('/v1/streams/own', 'X: a\r\n'.repeat(200)), '431 or closed'],
    ['a cursor of 5000 characters', get(`/v1/streams/own?cursor=${'a'.repeat(5000)}`), 'malformed'],
    ['a filter of 65 types', get(`/v1/streams/own?types=${many(65)}`), 'invalid_query'],
    ['a filter with a type of 129 bytes', get(`/v1/streams/own?types=${'t'.repeat(129)}`), 'invalid_query'],
    [
      'a subscriber’s name of 201 characters',
      get(`/v1/streams/own?subscriber=${'a'.repeat(201)}`),
      'invalid_query',
    ],
    [
      '17 streams at once',
      get(
        `/v1/streams?${range(1, 17)
          .map((at) => `stream=own-${at}`)
          .join('&')}`,
      ),
      'invalid_query',
    ],
    ['2500 cursors at once', get(`/v1/streams?stream=own&${'cursor&'.repeat(2500)}`), 'invalid_query'],
    ['a body that announces 100 GB', post('Content-Length: 99999999999\r\n'), 'body_too_large'],
    ['a body of 70000 bytes', post('Content-Length: 70000\r\n', 'x'.repeat(70_000)), 'body_too_large'],
    [
      'a chunk that announces 2^64 - 1 bytes',
      post('Transfer-Encoding: chunked\r\n', 'ffffffffffffffff\r\nx'),
      '400',
    ],
    ['a length below 0', post('Content-Length: -1\r\n'), '400'],
    [
      'a length and chunks, to smuggle',
      post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\nGET /'),
      '400',
    ],
    ['an event of 4097 bytes', ofType('text/plain', 'x'.repeat(4097)), 'event_too_large'],
    [
      'a batch of 101 events',
      ofType(MEDIA_TYPES.batch, JSON.stringify(range(1, 101).map((data) => ({ data })))),
      'batch_too_large',
    ],
    [
      'an array of 2^32 - 1 in five bytes',
      ofType(MEDIA_TYPES.msgpack, '\xdd\xff\xff\xff\xff'),
      'batch_too_large',
    ],
    [
      'nested 1000 deep',
      ofType(MEDIA_TYPES.msgpack, `\x91\x81\xa4data${'\x91'.repeat(1000)}\x01`),
      'invalid_body',
    ],
    [
      'a type of 129 bytes',
      post(`Gapless-Event: ${'t'.repeat(129)}\r\nContent-Length: 1\r\n`),
      'invalid_event_type',
    ],
    [
      'a key of 257 characters',
      post(`Idempotency-Key: ${'k'.repeat(257)}\r\nContent-Length: 1\r\n`),
      'invalid_producer',
    ],
  ];
  for (const [attack, bytes, got] of ROWS) {
    it(`${attack}: ${got}`, async () => {
      const response = await exchangeRaw(broker.port, Buffer.from(bytes, 'latin1'), {
        // Where the library gives no answer it would close in some ten seconds.
        end: got.includes('closed'),
      });
      const isProblem = response?.header('content-type')?.startsWith('application/problem+json') ?? false;
      const seen = isProblem ? response?.json().code : String(response?.status ?? 'closed');
      assert.ok(got.split(' or ').includes(seen as string), `${seen} ${response?.text}`);
    });
  }

  it('nothing of all that was appended', async () => {
    const state = await request(broker.port, { path: '/v1/streams/own/state', headers: asOperator });
    assert.equal(state.json().head, 1);
  });
});

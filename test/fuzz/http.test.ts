import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { ERRORS } from '#gapless/errors.js';
import { describeOnEdges, type SuiteBroker } from '../support/broker-process.js';
import {
  createStream,
  freshStream,
  type Published,
  publishRequest,
  stateOf,
} from '../support/gapless-client.js';
import { encodeRequest, type HttpRequest } from '../support/http.js';
import { Witness } from '../support/witness.js';
import { ACCEPTS, BODIES, CONTENT_TYPES, QUERIES, STREAM_CONFIG } from './corpus.js';
import { fuzz } from './fuzz.js';
import { mutate, mutateText, mutations } from './mutation.js';
import { type RawAnswer, rawExchange, split, splitRequest } from './raw-exchange.js';

/** Of success, of the table, and of the HTTP library for what is no HTTP (contract 8). */
const STATUSES = new Set([
  200,
  201,
  204,
  400,
  431,
  501,
  505,
  ...Object.values(ERRORS).map(({ status }) => status),
]);
const MANY = 200;
const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 });

/** Requests that are right. What changes streams as such goes to `victim`. */
function requests(stream: string, victim: string): HttpRequest[] {
  const path = `/v1/streams/${stream}`;
  return [
    ...BODIES.map(([type, body]) => publishRequest(stream, body, type, { 'Gapless-Event': 'tick' })),
    ...QUERIES.map((query) => ({ path: `${path}?${query}`, headers: { Accept: 'application/json' } })),
    ...ACCEPTS.map((accept) => ({ path, headers: { Accept: accept, 'Last-Event-ID': 'abcdefghij.3' } })),
    publishRequest(stream, 'x', 'text/plain', { 'Gapless-If-Head': 'abcdefghij.3' }),
    { method: 'HEAD', path },
    { path: `${path}/state` },
    { path: '/v1/streams?prefix=play&limit=2' },
    { path: '/healthz' },
    { method: 'PUT', path: `/v1/streams/${victim}`, body: STREAM_CONFIG },
    { method: 'POST', path: `/v1/streams/${victim}/close` },
    { method: 'DELETE', path: `/v1/streams/${victim}` },
    { method: 'OPTIONS', path, headers: { Origin: 'https://a.example' } },
  ];
}

/** All statuses and codes in an answer are those that the contract has. */
function assertOfTheContract({ bytes }: Pick<RawAnswer, 'bytes'>): void {
  const text = bytes.toString('latin1');
  for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3})/g))
    assert.ok(STATUSES.has(Number(status)), `${status}: ${text.slice(0, 400)}`);
  for (const [, code = ''] of text.matchAll(/"type":"urn:gapless:error:(\w+)"/g))
    assert.ok(code in ERRORS, `${code} is not in the table`);
}

/** A whole answer to one request: a success, or a problem of the table with its status. */
function assertProblemOrSuccess({ head, body }: RawAnswer): void {
  assert.ok(head !== undefined, 'no answer');
  if (head.status < 400 || body.length === 0) return;
  assert.equal(head.headers.get('content-type'), 'application/problem+json', body.toString());
  const { code, status } = JSON.parse(body.toString()) as { code: keyof typeof ERRORS; status: number };
  assert.equal(ERRORS[code]?.status, status, body.toString());
  assert.equal(head.status, status);
}

describeOnEdges('fuzzed HTTP', ['--long-poll-ms-max', '0'], (broker) => {
  it('8 bytes that are no request, or almost one, in any pieces, are answered by the contract or cut', async (context) => {
    const witness = await Witness.start(broker);
    const { stream, victim } = await playground(broker);
    const request = fc.constantFrom(...requests(stream, victim).map(encodeRequest));
    const pipelined = fc.array(fc.tuple(request, mutations(3)), { minLength: 1, maxLength: 3 });
    let count = 0;
    await fuzz(context, fc.tuple(pipelined, fractions), async ([drawn, cuts]) => {
      const bytes = Buffer.concat(drawn.map(([good, changes]) => mutate(good, changes)));
      assertOfTheContract(await rawExchange(broker.port, { pieces: split(bytes, cuts) }));
      if (++count % MANY === 0) await witness.check();
    });
    await witness.end();
  });

  it('8 a refusal changes nothing, and a success what it says, whatever headers and bodies say', async (context) => {
    const witness = await Witness.start(broker);
    const { stream } = await playground(broker);
    const inputs = fc.record({
      type: changedText(CONTENT_TYPES),
      eventType: fc.option(changedText(['tick', 'stream_closed', 't'.repeat(128)])),
      ifHead: fc.option(changedText(['abcdefghij.3', 'latest']), { freq: 4 }),
      body: fc
        .tuple(fc.constantFrom(...BODIES), mutations(2))
        .map(([[, body], changes]) => mutate(body, changes)),
    });
    await fuzz(context, inputs, async ({ type, eventType, ifHead, body }) => {
      const before = await stateOf(broker.port, stream);
      const headers = {
        ...(eventType === null ? {} : { 'Gapless-Event': eventType }),
        ...(ifHead === null ? {} : { 'Gapless-If-Head': ifHead }),
      };
      const bytes = encodeRequest(publishRequest(stream, body, type, headers));
      const answer = await rawExchange(broker.port, { pieces: [bytes], method: 'POST' });
      assertProblemOrSuccess(answer);
      const appended = answer.head?.status === 200 ? (JSON.parse(answer.body.toString()) as Published) : null;
      if (appended !== null)
        assert.deepEqual([appended.epoch, appended.first], [before.epoch, before.head + 1]);
      const { epoch, head } = await stateOf(broker.port, stream);
      assert.deepEqual([epoch, head], [before.epoch, appended?.last ?? before.head]);
    });
    await witness.end();
  });

  it('4 whoever asks to read with any cursor, query and Accept is answered by the contract', async (context) => {
    const witness = await Witness.start(broker);
    const { stream, epoch } = await playground(broker);
    const inputs = fc.record({
      query: changedText([...QUERIES, `cursor=${epoch}.1`, '']),
      accept: changedText(ACCEPTS),
      lastEventId: fc.option(changedText([`${epoch}.0`, `${epoch}.99`, 'abcdefghij.1', 'earliest'])),
    });
    await fuzz(context, inputs, async ({ query, accept, lastEventId }) => {
      const headers = { Accept: accept, ...(lastEventId === null ? {} : { 'Last-Event-ID': lastEventId }) };
      // What would end the target is another request, not another query.
      const path = `/v1/streams/${stream}?${query.replace(/[\x00-\x20\x7f#]/g, '_')}`;
      const answer = await rawExchange(broker.port, {
        pieces: [encodeRequest({ path, headers })],
        method: 'GET',
      });
      assertProblemOrSuccess(answer);
    });
    await witness.end();
  });

  it('8 a request that comes in any pieces, with a length or in chunks, is answered as if it came at once', async (context) => {
    const witness = await Witness.start(broker);
    const { stream, victim } = await playground(broker);
    const bodies = fc.constantFrom(...BODIES);
    const reads = requests(stream, victim).filter(
      ({ method, body }) => method === undefined && body === undefined,
    );
    await fuzz(context, fc.tuple(bodies, fractions, fractions, fc.constantFrom(...reads)), async (drawn) => {
      const [[type, body], cuts, chunkCuts, read] = drawn;
      const whole = encodeRequest(publishRequest(stream, body, type));
      const chunked = encodeChunked(stream, type, split(body, chunkCuts));
      const counts = [];
      for (const pieces of [[whole], splitRequest(whole, cuts), splitRequest(chunked, cuts)]) {
        const { head, body: answer } = await rawExchange(broker.port, { pieces, method: 'POST' });
        assert.equal(head?.status, 200, answer.toString());
        const { first, last } = JSON.parse(answer.toString()) as Published;
        counts.push(last - first + 1);
      }
      assert.equal(new Set(counts).size, 1, `so many events: ${counts}`);
      const asked = encodeRequest(read);
      const once = await rawExchange(broker.port, { pieces: [asked], method: 'GET' });
      const inPieces = await rawExchange(broker.port, { pieces: splitRequest(asked, cuts), method: 'GET' });
      assert.equal(inPieces.head?.status, once.head?.status);
    });
    await witness.end();
  });
});

/** A stream with an event, that keeps little, and the name of another, which requests may create and delete. */
async function playground(broker: SuiteBroker): Promise<{ stream: string; victim: string; epoch: string }> {
  const stream = freshStream('playground');
  await createStream(broker.port, stream, { retention: { events: 100 } });
  const { epoch } = await stateOf(broker.port, stream);
  return { stream, victim: freshStream('victim'), epoch };
}

/**
 * A header's value that stays one. Control characters are for the first fuzzer: they are no HTTP, and the library
 * waits with them for more, until it closes without an answer.
 */
function changedText(texts: readonly string[]): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...texts), mutations(3))
    .map(([text, changes]) => mutateText(text, changes).replace(/[\x00-\x1f\x7f]/g, '_'));
}

function encodeChunked(stream: string, type: string, chunks: readonly Uint8Array[]): Buffer {
  const typed = type === '' ? '' : `Content-Type: ${type}\r\n`;
  const head = `POST /v1/streams/${stream} HTTP/1.1\r\nHost: x\r\n${typed}Transfer-Encoding: chunked\r\n\r\n`;
  const pieces = chunks
    .filter((chunk) => chunk.length > 0)
    .flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]);
  return Buffer.concat([Buffer.from(head), ...pieces, Buffer.from('0\r\n\r\n')]);
}

import { pack } from 'msgpackr';
import type { Check } from './check.js';
import { expect, expectEqual, expectProblem, expectStatus } from './expect.js';
import { MEDIA, type Target } from './target.js';

/** What arrives of a body: `type` is null for an untyped event. */
interface Arrived {
  data: string;
  type: string | null;
  encoding?: string;
}

/** Publishes on a stream of its own and reads what arrives at a subscriber. */
async function arrivals(target: Target, body: string | Uint8Array, type: string): Promise<Arrived[]> {
  const { name } = await target.createStream();
  const { first, last } = await target.publish(name, body, type);
  expectEqual(first, 1, 'the first seq');
  const subscription = await target.subscribe(name, { query: 'cursor=earliest' });
  await subscription.untilEvents(last);
  subscription.close();
  return subscription.events.map(({ data = '', event = null, encoding }) => {
    return { data, type: event, ...(encoding === undefined ? {} : { encoding }) };
  });
}

const untyped = (...data: string[]): Arrived[] => data.map((text) => ({ data: text, type: null }));

/** Bodies, and the events that they are. */
const BODIES: [what: string, type: string, body: string | Uint8Array, events: Arrived[]][] = [
  ['JSON is one event, opaque', MEDIA.json, '{"a": [1,  2]} not JSON', untyped('{"a": [1,  2]} not JSON')],
  ['text is one event', MEDIA.text, 'grüße 🎈', untyped('grüße 🎈')],
  ['a form is one event, as it is', 'application/x-www-form-urlencoded', 'a=1&b=%20', untyped('a=1&b=%20')],
  ['no type is one event', '', 'plain', untyped('plain')],
  ['types know no case, and UTF-8 is a charset', 'Text/Plain; Charset=UTF-8', 'x', untyped('x')],
  ['an empty body is an event with empty data', MEDIA.text, '', untyped('')],
  ['CR, CRLF and LF all arrive as LF', MEDIA.text, 'a\rb\r\nc\nd', untyped('a\nb\nc\nd')],
  [
    'data that looks like fields stays data',
    MEDIA.text,
    'id: 9\n\nevent: x\n:',
    untyped('id: 9\n\nevent: x\n:'),
  ],
  [
    'NDJSON is an event a line',
    MEDIA.ndjson,
    '{"n":1}\r\n\n \t\n not JSON\n',
    untyped('{"n":1}', ' not JSON'),
  ],
  [
    'bytes arrive as base64, marked',
    MEDIA.binary,
    Uint8Array.of(0, 255, 10, 13, 128),
    [{ data: 'AP8KDYA=', type: null, encoding: 'base64' }],
  ],
  [
    'a JSON batch has types, texts and values',
    MEDIA.batch,
    '[{"type":"tick","data":"a\\nb"},{"data":{"n": [1]}},{"type":"message","data":null},{"data":""}]',
    [{ data: 'a\nb', type: 'tick' }, ...untyped('{"n": [1]}', 'null', '')],
  ],
  [
    'a MessagePack batch has types, texts, values and bytes',
    MEDIA.msgpack,
    pack([{ type: 'tick', data: 'a' }, { data: { n: [1] } }, { data: Buffer.from([1, 2]) }]),
    [{ data: 'a', type: 'tick' }, ...untyped('{"n":[1]}'), { data: 'AQI=', type: null, encoding: 'base64' }],
  ],
];

/** Bodies that are refused, and with which code. */
const REFUSED: [what: string, status: number, code: string, type: string, body: string | Uint8Array][] = [
  ['a foreign type', 415, 'unsupported_type', 'text/html', 'x'],
  ['a foreign charset', 415, 'unsupported_type', 'text/plain; charset=iso-8859-1', 'x'],
  ['text that is not UTF-8', 400, 'invalid_utf8', MEDIA.text, Uint8Array.of(0x61, 0xc3, 0x28)],
  ['a surrogate as UTF-8', 400, 'invalid_utf8', MEDIA.json, Uint8Array.of(0xed, 0xa0, 0x80)],
  ['half a surrogate pair as an escape', 400, 'invalid_utf8', MEDIA.batch, '[{"data":"\\ud800"}]'],
  ['a line that is not UTF-8', 400, 'invalid_utf8', MEDIA.ndjson, Buffer.from('good\n\xff\ngood', 'latin1')],
  ['no lines', 400, 'empty_batch', MEDIA.ndjson, '\n\r\n'],
  ['an empty JSON batch', 400, 'empty_batch', MEDIA.batch, '[]'],
  ['an empty MessagePack batch', 400, 'empty_batch', MEDIA.msgpack, pack([])],
  ['a batch that is no array', 400, 'invalid_body', MEDIA.batch, '{"data":"x"}'],
  ['half a batch', 400, 'invalid_body', MEDIA.batch, '[{"data":"x"},{"da'],
  ['an event without data', 400, 'invalid_body', MEDIA.batch, '[{"data":"good"},{"type":"x"}]'],
  ['a member that stands twice', 400, 'invalid_body', MEDIA.batch, '[{"data":"x","data":"y"}]'],
  ['an unknown member', 400, 'invalid_body', MEDIA.batch, '[{"data":"x","id":"1"}]'],
  ['half a MessagePack batch', 400, 'invalid_body', MEDIA.msgpack, pack([{ data: 'x' }]).subarray(0, 6)],
  ['bytes inside a value', 400, 'invalid_body', MEDIA.msgpack, pack([{ data: { a: Buffer.from([1]) } }])],
];

export const bodyChecks: Check[] = [
  ...BODIES.map(([what, type, body, events]): Check => {
    const run = async (target: Target) =>
      expectEqual(await arrivals(target, body, type), events, 'what arrives');
    return { section: '3.1', what, run };
  }),
  ...REFUSED.map(([what, status, code, type, body]): Check => {
    return { section: '3.1', what: `${what} is ${status} ${code}, and appends nothing`, run: expectRefused };

    async function expectRefused(target: Target): Promise<void> {
      const { name } = await target.createStream();
      const { supported, detail } = expectProblem(await target.post(name, body, type), status, code, what);
      if (what === 'a foreign type') expect(Array.isArray(supported), 'no list of supported types');
      if (code === 'invalid_body') expect(typeof detail === 'string', 'no detail that says where');
      expectEqual((await target.positions(name)).head, 0, 'the head after the refusal');
    }
  }),
  {
    section: '3.1',
    what: 'a batch is whole: its seqs are consecutive, whoever publishes beside it',
    async run(target) {
      const { name } = await target.createStream();
      const batches = ['a', 'b', 'c', 'd'].map((who) =>
        Array.from({ length: 50 }, (_unused, at) => `${who}${at}`),
      );
      const published = await Promise.all(batches.map((lines) => target.publishLines(name, lines)));
      const answer = await target.page(name, 'limit=200');
      expectStatus(answer, 200, 'a page');
      const data = (answer.json() as { events: { data: string }[] }).events.map((event) => event.data);
      for (const [index, { first, last }] of published.entries())
        expectEqual(data.slice(first - 1, last), batches[index], 'the events of one batch');
    },
  },
];

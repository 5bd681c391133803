import { pack } from 'msgpackr';
import { MEDIA_TYPES } from '../support/gapless-client.js';

/** Bodies that are right, of each type; fuzzers change them. */
export const BODIES: [type: string, body: Uint8Array][] = [
  [MEDIA_TYPES.text, Buffer.from('grüße 🎈\r\nzwei\rdrei')],
  [MEDIA_TYPES.json, Buffer.from('{"n": [1, 2.5e3, null], "s": "\\u00e9"}')],
  ['', Buffer.from('untyped')],
  [MEDIA_TYPES.form, Buffer.from('a=1&b=%20')],
  [MEDIA_TYPES.ndjson, Buffer.from('{"n":1}\r\n\n  \n{"n":2}\nlast')],
  [MEDIA_TYPES.binary, Uint8Array.of(0, 255, 10, 13, 128, 58)],
  [
    MEDIA_TYPES.batch,
    Buffer.from(
      '[ {"type": "tick", "data": "a\\nb\\ud83c\\udf88"}, {"data": {"n": [1, {"m": -0.5}]}}, {"data": null} ]',
    ),
  ],
  [
    MEDIA_TYPES.msgpack,
    pack([
      { type: 'tick', data: 'a\nb' },
      { data: { n: [1, -2, 1e300, null, true], ü: 'x'.repeat(40) } },
      { data: Buffer.from([1, 2, 3]) },
    ]),
  ],
];

export const CONTENT_TYPES = [
  ...BODIES.map(([type]) => type),
  'text/plain; charset=utf-8',
  'TEXT/PLAIN;CHARSET="utf8"',
];

/** Queries of the paths that read. */
export const QUERIES = [
  'cursor=earliest&limit=5&wait=0',
  'cursor=latest&wait=0&types=tick,message',
  'on_unavailable=event&cursor=abcdefghij.3',
  'prefix=play&limit=5&after=a~b',
  'cursor=%65arliest&types=%C3%BC',
];

/** What `Accept` may say. */
export const ACCEPTS = [
  'application/json',
  'application/x-ndjson;q=0.9, application/msgpack;q=0.1',
  'text/event-stream',
  '*/*;q=0.5, text/*',
  'application/*; q=1, image/png',
];

/** A configuration of a stream (contract 2.1). */
export const STREAM_CONFIG =
  '{"retention": {"events": 100, "bytes": 65536, "ageMs": 60000}, "overflow": "evict", "ttlMs": 0}';

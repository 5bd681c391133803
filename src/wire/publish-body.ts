import { isUtf8 } from 'node:buffer';
import { checkEventType } from '../core/event-type.js';
import type { FrameBatch } from '../core/sse-frame.js';
import { RequestError } from '../errors.js';
import { EventSink, type PublishLimits } from './event-sink.js';
import { decodeJsonBatch } from './json-batch.js';
import { decodeMsgpackBatch } from './msgpack-batch.js';

interface Format {
  readonly decode: (body: Uint8Array, sink: EventSink) => void;
  /** Whether the body as a whole is text, and so must be UTF-8. */
  readonly isText: boolean;
}

const ONE_TEXT: Format = { decode: decodeText, isText: true };

/** What a publish can be sent as (contract 3.1). */
const FORMATS: ReadonlyMap<string, Format> = new Map([
  ['', ONE_TEXT],
  ['application/json', ONE_TEXT],
  ['application/msgpack', { decode: decodeMsgpackBatch, isText: false }],
  ['application/octet-stream', { decode: decodeBinary, isText: false }],
  ['application/vnd.gapless.batch+json', { decode: decodeJsonBatch, isText: true }],
  ['application/x-ndjson', { decode: decodeLines, isText: true }],
  ['application/x-www-form-urlencoded', ONE_TEXT],
  ['text/plain', ONE_TEXT],
]);

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * Reads the body of a publish and frames its events into `out`, which is emptied first (contract 3.1, 3.2).
 *
 * JSON is not parsed: a single event's body is its data as it stands. A batch is all or nothing, so when this throws,
 * what `out` holds must not be used.
 *
 * @param contentType the raw header; empty when there is none.
 * @param eventType the `Gapless-Event` header: the type of each event that does not name its own.
 * @throws {RequestError} `unsupported_type`, `invalid_event_type`, `reserved_type`, `invalid_utf8`, `invalid_body`,
 *   `empty_batch`, `event_too_large` or `batch_too_large`.
 */
export function decodePublish(
  contentType: string,
  body: Uint8Array,
  eventType: string | null,
  limits: PublishLimits,
  out: FrameBatch,
): void {
  out.reset();
  const format = FORMATS.get(contentType) ?? negotiate(contentType);
  if (eventType !== null) checkEventType(eventType);
  if (format.isText && !isUtf8(body)) throw new RequestError('invalid_utf8');
  format.decode(body, new EventSink(out, eventType, limits));
  if (out.count === 0) throw new RequestError('empty_batch');
}

/** The format of a header with capitals or parameters. Of those only the charset of a text means anything. */
function negotiate(contentType: string): Format {
  const [essence = '', ...parameters] = contentType.toLowerCase().split(';');
  const format = FORMATS.get(essence.trim());
  if (format === undefined) throw new RequestError('unsupported_type', undefined, { supported: supported() });
  for (const parameter of format.isText ? parameters : []) {
    const [name = '', value = ''] = parameter.split('=');
    const charset = value.trim().replaceAll('"', '');
    if (name.trim() === 'charset' && charset !== 'utf-8' && charset !== 'utf8') {
      throw new RequestError('unsupported_type', 'the charset of a text is utf-8');
    }
  }
  return format;
}

function supported(): string[] {
  return [...FORMATS.keys()].filter((type) => type !== '');
}

function decodeText(body: Uint8Array, sink: EventSink): void {
  sink.text(body, 0, body.length, sink.defaultType);
}

function decodeBinary(body: Uint8Array, sink: EventSink): void {
  sink.binary(body, 0, body.length, sink.defaultType);
}

/** One event a line. A CR before the LF belongs to the break; one elsewhere is data and breaks a `data` line. */
function decodeLines(body: Uint8Array, sink: EventSink): void {
  let start = 0;
  while (start < body.length) {
    const lf = body.indexOf(LF, start);
    const lineEnd = lf < 0 ? body.length : lf;
    const end = lineEnd > start && body[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd;
    if (!isBlank(body, start, end)) sink.text(body, start, end, sink.defaultType);
    start = lineEnd + 1;
  }
}

function isBlank(body: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = body[i];
    if (byte !== SPACE && byte !== TAB && byte !== CR) return false;
  }
  return true;
}

import { checkEventType } from '../core/event-type.js';
import { RequestError } from '../errors.js';
import type { EventSink } from './event-sink.js';
import { JsonScanner } from './json-scanner.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const encoder = new TextEncoder();

/**
 * Frames the events of an `application/vnd.gapless.batch+json` body: an array of `{type?, data}` (contract 3.1).
 *
 * The batch is scanned for where its values begin and end, and never built as one: data that is not a string is passed
 * on as the JSON that stands there, so numbers keep every digit, and a hostile body costs no more memory than one event
 * may. The body is UTF-8, already checked.
 *
 * @throws {RequestError} `invalid_body` and what {@link EventSink} and {@link checkEventType} throw.
 */
export function decodeJsonBatch(body: Uint8Array, sink: EventSink): void {
  const scanner = new JsonScanner(body);
  scanner.take(OPEN_ARRAY, 'an array of events');
  if (!scanner.takeIf(CLOSE_ARRAY)) {
    do {
      takeEvent(scanner, body, sink);
    } while (scanner.takeIf(COMMA));
    scanner.take(CLOSE_ARRAY, '"," or "]"');
  }
  scanner.takeEnd();
}

function takeEvent(scanner: JsonScanner, body: Uint8Array, sink: EventSink): void {
  let type = sink.defaultType;
  let hasType = false;
  let dataStart = -1;
  let dataEnd = -1;
  let isEscaped = false;

  scanner.take(OPEN_OBJECT, 'an event: an object with "data"');
  if (!scanner.takeIf(CLOSE_OBJECT)) {
    do {
      const name = scanner.takeString();
      scanner.take(COLON, '":"');
      if (name === 'type') {
        if (hasType) throw scanner.unexpected('one "type" in an event');
        hasType = true;
        type = scanner.takeString();
        checkEventType(type);
      } else if (name === 'data') {
        // Of two, one would be dropped in silence, and never have been read.
        if (dataStart >= 0) throw scanner.unexpected('one "data" in an event');
        dataStart = scanner.skipSpace();
        isEscaped = scanner.skipValue();
        dataEnd = scanner.at;
      } else {
        throw scanner.unexpected('only "type" and "data"');
      }
    } while (scanner.takeIf(COMMA));
    scanner.take(CLOSE_OBJECT, '"," or "}"');
  }
  if (dataStart < 0) throw scanner.unexpected('"data" in every event');

  if (body[dataStart] !== QUOTE) {
    sink.checkSize(dataEnd - dataStart);
    scanner.parse(dataStart, dataEnd);
    sink.text(body, dataStart, dataEnd, type);
  } else if (isEscaped) {
    const text = encode(scanner.parse(dataStart, dataEnd) as string);
    sink.text(text, 0, text.length, type);
  } else {
    sink.text(body, dataStart + 1, dataEnd - 1, type);
  }
}

function encode(text: string): Uint8Array {
  // An escape can spell half a surrogate pair, which has no UTF-8; encoding it would change the event in silence.
  if (!text.isWellFormed()) throw new RequestError('invalid_utf8', 'a string has half a surrogate pair');
  return encoder.encode(text);
}

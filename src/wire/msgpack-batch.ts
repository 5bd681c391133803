import { checkEventType } from '../core/event-type.js';
import type { EventSink } from './event-sink.js';
import { type MsgpackKind, MsgpackReader } from './msgpack-reader.js';

/** Deepest nesting of data that becomes JSON; the walk is recursive, and a hostile body must not exhaust the stack. */
const DEPTH_MAX = 128;

const encoder = new TextEncoder();

/**
 * Frames the events of an `application/msgpack` body: an array of `{type?, data}` (contract 3.1). Data that is a string
 * is a text event, bytes are a binary one, and any other value becomes its JSON.
 *
 * Values go from the body straight into frames or JSON text, no object is made of them: a byte of MessagePack can
 * stand for an object of a hundred, and a key such as `__proto__` means nothing on the way.
 *
 * @throws {RequestError} `invalid_body`, `invalid_utf8` and what {@link EventSink} and {@link checkEventType} throw.
 */
export function decodeMsgpackBatch(body: Uint8Array, sink: EventSink): void {
  const reader = new MsgpackReader(body);
  if (reader.next() !== 'array') throw reader.invalid('expected an array of events');
  const count = reader.count;
  sink.checkCount(count);
  for (let i = 0; i < count; i++) takeEvent(reader, sink);
  if (reader.at < body.length) throw reader.invalid('expected the end');
}

function takeEvent(reader: MsgpackReader, sink: EventSink): void {
  let type = sink.defaultType;
  let hasType = false;
  let dataAt = -1;
  if (reader.next() !== 'map') throw reader.invalid('expected an event: a map with "data"');
  for (let members = reader.count; members > 0; members--) {
    const name = readString(reader);
    if (name === 'type') {
      if (hasType) throw reader.invalid('expected one "type" in an event');
      hasType = true;
      type = readString(reader);
      checkEventType(type);
    } else if (name === 'data') {
      // Of two, one would be dropped in silence.
      if (dataAt >= 0) throw reader.invalid('expected one "data" in an event');
      dataAt = reader.at;
      reader.skip();
    } else {
      throw reader.invalid('expected only "type" and "data"');
    }
  }
  if (dataAt < 0) throw reader.invalid('expected "data" in every event');

  // The type may come after the data, so the data is read once the event is known whole.
  const itemEnd = reader.at;
  reader.at = dataAt;
  takeData(reader, type, sink);
  reader.at = itemEnd;
}

function takeData(reader: MsgpackReader, type: string | null, sink: EventSink): void {
  const kind = reader.next();
  if (kind === 'bytes') {
    sink.binary(reader.bytes, reader.start, reader.end, type);
  } else if (kind === 'string') {
    reader.checkText();
    sink.text(reader.bytes, reader.start, reader.end, type);
  } else {
    const json = encoder.encode(new JsonWriter(reader, sink).write(kind));
    sink.text(json, 0, json.length, type);
  }
}

function readString(reader: MsgpackReader): string {
  if (reader.next() !== 'string') throw reader.invalid('expected a string');
  return reader.text();
}

/** Writes one MessagePack value as JSON, and stops as soon as it is larger than an event may be. */
class JsonWriter {
  readonly #reader: MsgpackReader;
  readonly #sink: EventSink;
  #json = '';

  constructor(reader: MsgpackReader, sink: EventSink) {
    this.#reader = reader;
    this.#sink = sink;
  }

  /** Writes the value whose header, of this kind, the reader has just read. */
  write(kind: MsgpackKind): string {
    this.#value(kind, 0);
    return this.#json;
  }

  #value(kind: MsgpackKind, depth: number): void {
    if (depth > DEPTH_MAX) throw this.#reader.invalid(`data is nested at most ${DEPTH_MAX} deep`);
    if (kind === 'array') this.#array(depth);
    else if (kind === 'map') this.#map(depth);
    else if (kind === 'string') this.#string();
    else if (kind === 'bytes') throw this.#reader.invalid('bytes inside a value have no JSON');
    else this.#append(this.#reader.json);
  }

  #array(depth: number): void {
    const count = this.#reader.count;
    this.#append('[');
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#append(',');
      this.#value(this.#reader.next(), depth + 1);
    }
    this.#append(']');
  }

  #map(depth: number): void {
    const count = this.#reader.count;
    this.#append('{');
    for (let i = 0; i < count; i++) {
      if (i > 0) this.#append(',');
      this.#key(this.#reader.next());
      this.#append(':');
      this.#value(this.#reader.next(), depth + 1);
    }
    this.#append('}');
  }

  /** JSON's keys are strings; an integer becomes one, as it does in JavaScript. */
  #key(kind: MsgpackKind): void {
    if (kind === 'string') this.#string();
    else if (kind === 'integer') this.#append(`"${this.#reader.json}"`);
    else throw this.#reader.invalid('a key is a string or an integer');
  }

  #string(): void {
    this.#sink.checkSize(this.#reader.end - this.#reader.start);
    this.#append(JSON.stringify(this.#reader.text()));
  }

  #append(json: string): void {
    this.#json += json;
    this.#sink.checkSize(this.#json.length);
  }
}

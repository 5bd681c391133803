import type { EventData, NewEvent } from './publish.js';

/** Content type of a batch of any events (contract 3.1). */
export const BATCH_TYPE = 'application/msgpack';

const encoder = new TextEncoder();

/** An event whose data is as it goes on the wire: text, or bytes. */
export interface WireEvent {
  readonly data: Uint8Array;
  readonly isBinary: boolean;
  readonly type: Uint8Array | null;
}

/** Writes batches as MessagePack: the one form that holds text, bytes and types alike (contract 3.1). */
export class BatchBody {
  readonly #events: WireEvent[] = [];
  /** Size of the body, bytes, but for its header. */
  #bytes = 0;

  get count(): number {
    return this.#events.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(event: WireEvent): void {
    this.#events.push(event);
    this.#bytes += sizeOf(event);
  }

  encode(): Uint8Array<ArrayBuffer> {
    const writer = new MessagePackWriter(5 + this.#bytes);
    writer.array(this.#events.length);
    for (const { data, isBinary, type } of this.#events) {
      writer.map(type === null ? 1 : 2);
      if (type !== null) {
        writer.text(TYPE_KEY);
        writer.text(type);
      }
      writer.text(DATA_KEY);
      if (isBinary) writer.binary(data);
      else writer.text(data);
    }
    return writer.written;
  }
}

/** @throws {TypeError} for what is no data. */
export function encodeEvent({ data, type }: NewEvent): WireEvent {
  const isBinary = data instanceof Uint8Array;
  return {
    data: isBinary ? data : encoder.encode(textOf(data)),
    isBinary,
    type: type === undefined ? null : encoder.encode(type),
  };
}

/** The text that a value is published as. */
export function textOf(data: Exclude<EventData, Uint8Array>): string {
  if (typeof data === 'string') return data;
  const json: unknown = JSON.stringify(data);
  if (typeof json === 'string' && !isLost(data, json)) return json;
  throw new TypeError('the data of an event has to be text, a Uint8Array, or a value that JSON knows');
}

/** Whether JSON makes something else of a value and reports no error: other kinds of bytes, a promise, a map, an `Error`. */
function isLost(data: Exclude<EventData, Uint8Array>, json: string): boolean {
  if (typeof data !== 'object' || data === null) return false;
  if (ArrayBuffer.isView(data)) return true;
  // Of a plain object that is right, from whichever realm it comes; and a class may say itself what it is as JSON.
  const prototype: unknown = Object.getPrototypeOf(data);
  return (
    json === '{}' && !('toJSON' in data) && prototype !== null && Object.getPrototypeOf(prototype) !== null
  );
}

const TYPE_KEY = encoder.encode('type');
const DATA_KEY = encoder.encode('data');
/** The map's header, and for each text the longest header that there is. */
const HEADERS_BYTES = 1 + 5 * 4;

/** Bytes that an event adds to a body, at most. */
export function sizeOf({ data, type }: WireEvent): number {
  const typeBytes = type === null ? 0 : TYPE_KEY.length + type.length;
  return HEADERS_BYTES + DATA_KEY.length + data.length + typeBytes;
}

/** The forms with lengths of 32 bits, but for what is tiny: any reader takes them. */
class MessagePackWriter {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  #at = 0;

  constructor(bytesMax: number) {
    this.#bytes = new Uint8Array(bytesMax);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#at);
  }

  array(length: number): void {
    this.#head(0xdd, length);
  }

  /** Of at most 15 members. */
  map(size: number): void {
    this.#bytes[this.#at++] = 0x80 | size;
  }

  text(utf8: Uint8Array): void {
    this.#head(0xdb, utf8.length);
    this.#put(utf8);
  }

  binary(data: Uint8Array): void {
    this.#head(0xc6, data.length);
    this.#put(data);
  }

  #head(form: number, length: number): void {
    this.#bytes[this.#at] = form;
    this.#view.setUint32(this.#at + 1, length);
    this.#at += 5;
  }

  #put(data: Uint8Array): void {
    this.#bytes.set(data, this.#at);
    this.#at += data.length;
  }
}

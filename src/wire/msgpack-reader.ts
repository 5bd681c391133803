import { isUtf8 } from 'node:buffer';
import { RequestError } from '../errors.js';

/** What a MessagePack value is, as far as an event's data tells values apart. */
export type MsgpackKind = 'nil' | 'boolean' | 'integer' | 'float' | 'string' | 'bytes' | 'array' | 'map';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads MessagePack from outside, one header at a time. `next` reads a header and says what stands there; a string's or
 * byte string's content is then bytes[start, end), an array or a map has `count` elements or pairs that follow.
 *
 * Nothing is allocated for what a header promises, every length is held against the bytes that are there, and
 * extensions are refused: a type of somebody's own has no meaning here.
 */
export class MsgpackReader {
  readonly bytes: Uint8Array;
  at = 0;
  start = 0;
  end = 0;
  count = 0;
  /** The last scalar, as JSON spells it; 64-bit integers keep all their digits. */
  json = '';

  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /**
   * Reads the next header, and the content of a scalar with it.
   *
   * @throws {RequestError} `invalid_body` where the bytes end too early or are no MessagePack.
   */
  next(): MsgpackKind {
    const header = this.#uint(1);
    if (header < 0x80) return this.#integer(header);
    if (header < 0x90) return this.#collection('map', header & 0x0f);
    if (header < 0xa0) return this.#collection('array', header & 0x0f);
    if (header < 0xc0) return this.#content('string', header & 0x1f);
    if (header >= 0xe0) return this.#integer(header - 0x100);
    switch (header) {
      case 0xc0:
        return this.#scalar('nil', 'null');
      case 0xc2:
        return this.#scalar('boolean', 'false');
      case 0xc3:
        return this.#scalar('boolean', 'true');
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.#content('bytes', this.#uint(1 << (header - 0xc4)));
      case 0xca:
        return this.#float(this.#view.getFloat32(this.#advance(4)));
      case 0xcb:
        return this.#float(this.#view.getFloat64(this.#advance(8)));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#integer(this.#uint(1 << (header - 0xcc)));
      case 0xcf:
        return this.#integer(this.#view.getBigUint64(this.#advance(8)));
      case 0xd0:
        return this.#integer(this.#view.getInt8(this.#advance(1)));
      case 0xd1:
        return this.#integer(this.#view.getInt16(this.#advance(2)));
      case 0xd2:
        return this.#integer(this.#view.getInt32(this.#advance(4)));
      case 0xd3:
        return this.#integer(this.#view.getBigInt64(this.#advance(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#content('string', this.#uint(1 << (header - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#collection('array', this.#uint(2 << (header - 0xdc)));
      case 0xde:
      case 0xdf:
        return this.#collection('map', this.#uint(2 << (header - 0xde)));
      default:
        throw this.invalid('extensions are not accepted');
    }
  }

  /** Moves behind the next value, whatever it holds. */
  skip(): void {
    for (let pending = 1; pending > 0; pending--) {
      const kind = this.next();
      if (kind === 'array') pending += this.count;
      else if (kind === 'map') pending += 2 * this.count;
    }
  }

  /**
   * The text of the string that {@link next} has just read.
   *
   * @throws {RequestError} `invalid_utf8`.
   */
  text(): string {
    this.checkText();
    return decoder.decode(this.bytes.subarray(this.start, this.end));
  }

  /** Checks the string that {@link next} has just read without making it one. */
  checkText(): void {
    if (!isUtf8(this.bytes.subarray(this.start, this.end))) throw new RequestError('invalid_utf8');
  }

  invalid(detail: string): RequestError {
    return new RequestError('invalid_body', `byte ${this.at}: ${detail}`);
  }

  #scalar(kind: MsgpackKind, json: string): MsgpackKind {
    this.json = json;
    return kind;
  }

  #integer(value: number | bigint): MsgpackKind {
    return this.#scalar('integer', value.toString());
  }

  /** JSON has no infinity and no NaN; like `JSON.stringify`, it says null. */
  #float(value: number): MsgpackKind {
    return this.#scalar('float', JSON.stringify(value));
  }

  #collection(kind: MsgpackKind, count: number): MsgpackKind {
    this.count = count;
    return kind;
  }

  #content(kind: MsgpackKind, size: number): MsgpackKind {
    this.start = this.#advance(size);
    this.end = this.at;
    return kind;
  }

  #uint(size: number): number {
    const at = this.#advance(size);
    if (size === 1) return this.#view.getUint8(at);
    return size === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  /** Steps over `size` bytes and returns where they began. */
  #advance(size: number): number {
    const start = this.at;
    if (size > this.bytes.length - start) throw this.invalid('the bytes end inside a value');
    this.at = start + size;
    return start;
  }
}

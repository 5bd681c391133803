/**
 * What a peer says over a WebSocket (contract 5.5): a map with a `kind`, as JSON text or as MessagePack. Hostile ones
 * cost no more than their bytes.
 */

import { isUtf8 } from 'node:buffer';
import { RequestError } from '../errors.js';
import { JsonScanner } from './json-scanner.js';
import type { MessageFormat } from './live-message.js';
import { MsgpackReader } from './msgpack-reader.js';

export interface ClientMessage {
  /** Comes back with the answer; null: the peer gave none. */
  readonly ref: string | number | null;
  /** As given; not checked. `events` is the bytes that it stands in, for it may be large. */
  readonly members: ReadonlyMap<string, unknown>;
}

const REF_LENGTH_MAX = 64;
/** The member that is not read here. */
const UNREAD = 'events';

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;
const COMMA = 0x2c;

/** @throws {RequestError} `invalid_body` or `invalid_utf8` */
export function decodeClientMessage(format: MessageFormat, bytes: Uint8Array): ClientMessage {
  const members = format === 'json' ? readJson(bytes) : readMsgpack(bytes);
  return { ref: readRef(members.get('ref')), members };
}

function readRef(value: unknown): string | number | null {
  if (value === undefined) return null;
  if (Number.isSafeInteger(value)) return value as number;
  if (typeof value === 'string' && value.length <= REF_LENGTH_MAX) return value;
  throw new RequestError('invalid_body', `ref: expected an integer or up to ${REF_LENGTH_MAX} characters`);
}

function readJson(bytes: Uint8Array): Map<string, unknown> {
  if (!isUtf8(bytes)) throw new RequestError('invalid_utf8');
  const members = new Map<string, unknown>();
  const scanner = new JsonScanner(bytes);
  scanner.take(OPEN_OBJECT, 'an object');
  if (!scanner.takeIf(CLOSE_OBJECT)) {
    do {
      const name = scanner.takeString();
      if (members.has(name)) throw scanner.unexpected('each member once');
      scanner.take(COLON, '":"');
      const start = scanner.skipSpace();
      scanner.skipValue();
      const value = name === UNREAD ? bytes.subarray(start, scanner.at) : scanner.parse(start, scanner.at);
      members.set(name, value);
    } while (scanner.takeIf(COMMA));
    scanner.take(CLOSE_OBJECT, '"," or "}"');
  }
  scanner.takeEnd();
  return members;
}

function readMsgpack(bytes: Uint8Array): Map<string, unknown> {
  const members = new Map<string, unknown>();
  const reader = new MsgpackReader(bytes);
  if (reader.next() !== 'map') throw reader.invalid('expected a map');
  for (let left = reader.count; left > 0; left--) {
    if (reader.next() !== 'string') throw reader.invalid('expected a string');
    const name = reader.text();
    if (members.has(name)) throw reader.invalid('expected each member once');
    const at = reader.at;
    const kind = reader.next();
    if (kind === 'string') {
      members.set(name, reader.text());
    } else if (kind === 'integer') {
      members.set(name, Number(reader.json));
    } else {
      reader.at = at;
      reader.skip();
      members.set(name, name === UNREAD ? bytes.subarray(at, reader.at) : null);
    }
  }
  if (reader.at < bytes.length) throw reader.invalid('expected the end');
  return members;
}

/**
 * Ids of events as MCP clients are given them (contract 12.3):
 *
 *     <stream and calls, base64url> . <its MAC, base64url> . <seq> [ . <anything> ]
 *
 * The first part names the stream of the session, its epoch, and the calls that the stream answers: even when the stream
 * is gone these can be answered. The MAC binds it to the session and to who opened it, so nobody reads what is not
 * theirs by guessing. The seq is not under the MAC: whoever changes it gets another event of their own stream. What
 * follows it makes ids differ that name the same position, for some clients give up when an id comes back unchanged.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';

/** A stream of a session, and whom its ids are for. */
export interface StreamIdentity {
  /** Id of the session. */
  readonly session: string;
  /** Who opened it; empty where nobody authenticates. */
  readonly principal: string;
  /** Name of the stream within the session. */
  readonly key: string;
  readonly epoch: string;
  /** Ids of the calls that it answers, as JSON; none for the session's own stream. */
  readonly calls: readonly string[];
}

export interface EventPosition {
  readonly key: string;
  readonly epoch: string;
  readonly calls: readonly string[];
  /** The last event seen; null: the calls of the stream were answered already with that nobody can say more. */
  readonly seq: number | null;
}

/** Stands for the seq on the answer that ends a stream whose history is gone. */
const SETTLED = 'end';
const MAC_BYTES = 16;
const TEXT_LENGTH_MAX = 2048;
const FORM = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{22})\.(0|[1-9][0-9]{0,15}|end)(?:\.[a-z0-9]{1,16})?$/;

export class EventIds {
  readonly #secret: Uint8Array;

  /** @param secret at least 32 random bytes; ids of another one are not believed. */
  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  /** What the ids of a stream begin with; a dot and the seq follow. */
  prefix(stream: StreamIdentity): string {
    const { key, epoch, calls } = stream;
    const named = Buffer.from(JSON.stringify([key, epoch, ...calls])).toString('base64url');
    return `${named}.${this.#mac(stream.session, stream.principal, named).toString('base64url')}`;
  }

  /** Reads an id that was given to this session and this principal; null when it was not. */
  read(
    text: string,
    { session, principal }: Pick<StreamIdentity, 'session' | 'principal'>,
  ): EventPosition | null {
    const parts = partsOf(text);
    if (parts === null) return null;
    const mac = Buffer.from(parts.mac, 'base64url');
    return timingSafeEqual(mac, this.#mac(session, principal, parts.named)) ? positionOf(parts) : null;
  }

  /** What an id says, which may have been made up: it says where to look, and `read` whether it is right. */
  static claimed(text: string): EventPosition | null {
    const parts = partsOf(text);
    return parts === null ? null : positionOf(parts);
  }

  #mac(session: string, principal: string, named: string): Buffer {
    const hmac = createHmac('sha256', this.#secret).update(JSON.stringify([session, principal, named]));
    return hmac.digest().subarray(0, MAC_BYTES);
  }
}

/** The parts of an id, as they stand there. */
interface Parts {
  readonly named: string;
  readonly mac: string;
  readonly seq: string;
}

function partsOf(text: string): Parts | null {
  if (text.length > TEXT_LENGTH_MAX) return null;
  const [, named = '', mac = '', seq = ''] = FORM.exec(text) ?? [];
  return named === '' ? null : { named, mac, seq };
}

function positionOf({ named, seq }: Parts): EventPosition | null {
  const [key, epoch, ...calls] = readStrings(Buffer.from(named, 'base64url').toString());
  if (key === undefined || epoch === undefined || !calls.every(isCallId)) return null;
  return { key, epoch, calls, seq: seq === SETTLED ? null : Number(seq) };
}

/** None: it is no list of strings. */
function readStrings(json: string): string[] {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) && list.every((item) => typeof item === 'string') ? list : [];
  } catch {
    return [];
  }
}

/** As `JSON.stringify` writes one: it is put into answers as it stands. */
function isCallId(text: string): boolean {
  try {
    const id: unknown = JSON.parse(text);
    return (typeof id === 'string' || typeof id === 'number') && JSON.stringify(id) === text;
  } catch {
    return false;
  }
}

/** The id of the event with this seq. @param mark of the connection, where the position was not reached by an event. */
export function eventId(prefix: string, seq: number, mark?: string): string {
  return mark === undefined ? `${prefix}.${seq}` : `${prefix}.${seq}.${mark}`;
}

/** The id of the answer that says that a stream's history is gone. */
export function settledId(prefix: string): string {
  return `${prefix}.${SETTLED}`;
}

/**
 * Ids of the events of a session: `<stream>.<request>.<epoch>.<seq>`. The last two are the cursor in the session's
 * Gapless stream, so ids are unique in the session and in the order of the log. The first two are the event's type
 * there. The request that a stream answers is named so that its call can be ended when everything else is gone.
 */

import type { JsonRpcId } from './sdk-shapes.js';

/** Longest type of an event, bytes (contract 3.2). */
const TYPE_BYTES_MAX = 128;

export interface EventId {
  /** The SDK's name of the stream. */
  readonly streamId: string;
  /** Undefined where it was not known, and for the stream that belongs to no request. */
  readonly requestId: JsonRpcId | undefined;
  /** A cursor of the session's stream. */
  readonly cursor: string;
}

/**
 * The type under which an event of a stream is published.
 *
 * @throws {TypeError} for a stream whose name cannot stand in a header.
 */
export function eventType(streamId: string, requestId: JsonRpcId | undefined): string {
  if (!/^[\x21-\x7e]{1,100}$/.test(streamId)) throw new TypeError(`"${streamId}" cannot be part of an id`);
  const type = `${streamId}.${requestId === undefined ? '' : toBase64Url(JSON.stringify(requestId))}`;
  // A request with so long an id goes without: that costs its caller the early end of a call that is lost.
  return type.length <= TYPE_BYTES_MAX ? type : `${streamId}.`;
}

/** Whether an event of this type is of the stream, whichever request is named. */
export function isOfStream(type: string, streamId: string): boolean {
  return type.lastIndexOf('.') === streamId.length && type.startsWith(streamId);
}

/** Null for what is no such id. */
export function parseEventId(id: string): EventId | null {
  const match = /^(.{1,100})\.([A-Za-z0-9_-]*)\.([a-z0-9]{8,16}\.\d{1,16})$/.exec(id);
  if (match === null) return null;
  const [, streamId = '', request = '', cursor = ''] = match;
  return { streamId, requestId: request === '' ? undefined : requestOf(request), cursor };
}

/** The request that a type names. */
export function requestOfType(type: string): JsonRpcId | undefined {
  const request = type.slice(type.lastIndexOf('.') + 1);
  return request === '' ? undefined : requestOf(request);
}

function requestOf(base64Url: string): JsonRpcId | undefined {
  try {
    const id: unknown = JSON.parse(fromBase64Url(base64Url));
    return typeof id === 'string' || typeof id === 'number' ? id : undefined;
  } catch {
    return undefined;
  }
}

function toBase64Url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** @throws {TypeError} for bytes that are no UTF-8; a `DOMException` for what is no base64. */
function fromBase64Url(text: string): string {
  const characters = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from(characters, (character) => character.charCodeAt(0));
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

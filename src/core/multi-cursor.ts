/**
 * The cursor of a subscription to several streams (contract 4.10): where it is in each of them, in one id.
 *
 *     "m", then base64url without padding of
 *     offset size field
 *          0    6 fingerprint of the streams' names and epochs, in the order of the request
 *          6    n seqs in that order, each 7 bits a byte, lowest first, the high bit set on all but its last byte
 *
 * A name that was made anew has another epoch, and so the streams another fingerprint: no position of an old one is
 * taken for that of a new one (I3). 48 bits, as an epoch has 50.
 */

import { assert } from '../assert.js';

/** Browsers send longer ids to another origin only after a preflight. */
export const MULTI_CURSOR_LENGTH_MAX = 127;
export const MULTI_STREAMS_MAX = 16;

const MARK = 'm';
const FINGERPRINT_BYTES = 6;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const CURSOR = /^m[A-Za-z0-9_-]+$/;

export interface StreamIdentity {
  readonly name: string;
  readonly epoch: string;
}

/** 48 bits of the streams' names and epochs, in order. */
export function fingerprintOf(streams: readonly StreamIdentity[]): number {
  let a = 0x9e3779b1;
  let b = 0x85ebca77;
  for (const { name, epoch } of streams) {
    // Neither has a line feed or a space in it, so no two lists read the same.
    for (const character of `${name} ${epoch}\n`) {
      const code = character.charCodeAt(0);
      a = Math.imul(a ^ code, 0x5bd1e995);
      a ^= a >>> 15;
      b = Math.imul(b ^ code, 0xc2b2ae3d);
      b ^= b >>> 13;
    }
  }
  a = Math.imul(a ^ (b >>> 16), 0x27d4eb2f);
  b = Math.imul(b ^ (a >>> 15), 0x165667b1);
  return ((a ^ (a >>> 16)) >>> 0) * 2 ** 16 + ((b ^ (b >>> 15)) & 0xffff);
}

/** @returns null where it would be too long for a browser. */
export function formatMultiCursor(fingerprint: number, seqs: readonly number[]): string | null {
  const bytes: number[] = [];
  for (let shift = 2 ** 40; shift >= 1; shift /= 2 ** 8) bytes.push(Math.floor(fingerprint / shift) % 2 ** 8);
  assert(bytes.length === FINGERPRINT_BYTES, 'a fingerprint has 48 bits');
  for (const seq of seqs) pushSeq(bytes, seq);
  const text = MARK + toBase64Url(bytes);
  return text.length > MULTI_CURSOR_LENGTH_MAX ? null : text;
}

/**
 * Reads a cursor over `count` streams. One position has one spelling.
 *
 * @returns null when it is malformed.
 */
export function parseMultiCursor(
  text: string,
  count: number,
): { fingerprint: number; seqs: readonly number[] } | null {
  if (text.length > MULTI_CURSOR_LENGTH_MAX || !CURSOR.test(text)) return null;
  const bytes = fromBase64Url(text.slice(MARK.length));
  if (bytes.length < FINGERPRINT_BYTES) return null;
  let fingerprint = 0;
  for (let i = 0; i < FINGERPRINT_BYTES; i++) fingerprint = fingerprint * 2 ** 8 + (bytes[i] as number);
  const seqs: number[] = [];
  let at = FINGERPRINT_BYTES;
  while (at < bytes.length) {
    let seq = 0;
    let scale = 1;
    for (; at < bytes.length && scale < 2 ** 56; at++, scale *= 2 ** 7) {
      seq += ((bytes[at] as number) & 0x7f) * scale;
      if ((bytes[at] as number) < 0x80) break;
    }
    at++;
    if (!Number.isSafeInteger(seq)) return null;
    seqs.push(seq);
  }
  const isWhole = seqs.length === count && formatMultiCursor(fingerprint, seqs) === text;
  return isWhole ? { fingerprint, seqs } : null;
}

function pushSeq(bytes: number[], seq: number): void {
  assert(Number.isSafeInteger(seq) && seq >= 0, 'a seq is a whole number up to 2^53-1');
  let rest = seq;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push(0x80 + (rest % 0x80));
  bytes.push(rest);
}

function toBase64Url(bytes: readonly number[]): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const three = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    for (let digit = 0; digit <= Math.min(left, 3); digit++) {
      text += ALPHABET[(three >> (18 - 6 * digit)) & 63];
    }
  }
  return text;
}

function fromBase64Url(text: string): number[] {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const character of text) {
    value = ((value << 6) | ALPHABET.indexOf(character)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  return bytes;
}

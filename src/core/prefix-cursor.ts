/**
 * The id of a subscription by prefix (contract 4.11): which of the cursors that the server keeps, and how much of it was
 * sent. Positions in any number of streams do not fit an id, so they stay behind it.
 *
 *     "p", a token of 20 characters of [a-z0-9], 100 bits of them random, ".", how many steps were sent, in decimal
 */

import { EPOCH_LENGTH, makeEpoch } from './epoch.js';

export interface PrefixCursor {
  readonly token: string;
  /** What its subscription had sent by then, over all its connections. */
  readonly count: number;
}

/** Random bytes that a token takes. */
export const TOKEN_BYTES = 2 * EPOCH_LENGTH;

const CURSOR = /^p([a-z0-9]{20})\.(0|[1-9][0-9]{0,15})$/;

/** A token that nobody guesses: who has no account with the server is told apart by it alone. */
export function makeToken(randomBytes: Uint8Array): string {
  return makeEpoch(randomBytes.subarray(0, EPOCH_LENGTH)) + makeEpoch(randomBytes.subarray(EPOCH_LENGTH));
}

export function formatPrefixCursor({ token, count }: PrefixCursor): string {
  return `p${token}.${count}`;
}

/** One position has one spelling. @returns null when it is malformed. */
export function parsePrefixCursor(text: string): PrefixCursor | null {
  const [, token, digits] = CURSOR.exec(text) ?? [];
  if (token === undefined || !Number.isSafeInteger(Number(digits))) return null;
  return { token, count: Number(digits) };
}

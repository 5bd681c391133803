/** A position in a stream: the last event seen. `seq` 0 is before the first event (contract 1). */
export interface Cursor {
  readonly epoch: string;
  readonly seq: number;
}

/** Longest cursor the parser looks at: 16 characters of epoch, the dot, 16 digits. */
export const CURSOR_LENGTH_MAX = 33;

const CURSOR = /^([a-z0-9]{8,16})\.(0|[1-9][0-9]{0,15})$/;

/**
 * Reads `<epoch>.<seq>` (contract 1). One position has one spelling: a sign, a leading zero, an exponent or a seq
 * above 2^53-1 is malformed, or two texts could name the same event.
 *
 * @returns the cursor, or null when it is malformed.
 */
export function parseCursor(text: string): Cursor | null {
  if (text.length > CURSOR_LENGTH_MAX) return null;
  const match = CURSOR.exec(text);
  if (match === null) return null;
  const seq = Number(match[2]);
  return Number.isSafeInteger(seq) ? { epoch: match[1] as string, seq } : null;
}

/** Reads a cursor or one of the words `earliest` and `latest` (contract 4.1); null when it is neither. */
export function parseCursorOrWord(text: string): Cursor | 'earliest' | 'latest' | null {
  return text === 'earliest' || text === 'latest' ? text : parseCursor(text);
}

/** Writes the cursor of a position; the inverse of {@link parseCursor}. */
export function formatCursor(epoch: string, seq: number): string {
  return `${epoch}.${seq}`;
}

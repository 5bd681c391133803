import assert from 'node:assert/strict';

/** A position as the contract writes it (section 1). Read here anew, so that the broker's own reading is judged. */
export interface Position {
  epoch: string;
  seq: number;
}

export function cursorOf(epoch: string, seq: number): string {
  return `${epoch}.${seq}`;
}

/** Fails unless `text` is a cursor to the letter of section 1. */
export function positionOf(text: string): Position {
  const match = /^([a-z0-9]{8,16})\.(0|[1-9]\d{0,15})$/.exec(text);
  assert.ok(match?.[1] !== undefined && match[2] !== undefined, `not a cursor: ${JSON.stringify(text)}`);
  const seq = Number(match[2]);
  assert.ok(Number.isSafeInteger(seq), `a seq beyond 2^53-1: ${text}`);
  return { epoch: match[1], seq };
}

export function seqOf(cursor: string): number {
  return positionOf(cursor).seq;
}

/** first, first + 1 … last. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_unused, index) => first + index);
}

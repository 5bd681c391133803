/** Which publish of a producer this is: `seq` counts its requests, from 0 in each of its epochs (contract 3.4). */
export interface ProducerPosition {
  readonly epoch: number;
  readonly seq: number;
}

/** The next of its producer: append it. */
export const PUBLISH_NEXT = 0;
/** It was appended before, and where is remembered. */
export const PUBLISH_DUPLICATE = 1;
/** It was appended before, and so many of its producer's followed that it is not remembered where. */
export const PUBLISH_FORGOTTEN = 2;
/** Others of its producer have to come first: {@link expectedSeq} says which. */
export const PUBLISH_GAP = 3;
/** A newer epoch of its producer has begun. */
export const PUBLISH_FENCED = 4;

/** How many of a producer's newest publishes are remembered with their place. */
export const PRODUCER_WINDOW = 8;

/**
 * Judges a publish by the newest that is known of its producer, which is null for one that is not known.
 *
 * A key of contract 3.4 is a producer that publishes once, as 0 in epoch 0.
 *
 * @returns one of the constants above.
 */
export function judgePublish(asked: ProducerPosition, newest: ProducerPosition | null): number {
  if (newest !== null && asked.epoch < newest.epoch) return PUBLISH_FENCED;
  if (newest === null || asked.epoch > newest.epoch) return asked.seq === 0 ? PUBLISH_NEXT : PUBLISH_GAP;
  if (asked.seq > newest.seq) return asked.seq === newest.seq + 1 ? PUBLISH_NEXT : PUBLISH_GAP;
  return asked.seq > newest.seq - PRODUCER_WINDOW ? PUBLISH_DUPLICATE : PUBLISH_FORGOTTEN;
}

/** The seq that has to come next in the epoch that was asked for, after PUBLISH_GAP. */
export function expectedSeq(asked: ProducerPosition, newest: ProducerPosition | null): number {
  return newest === null || asked.epoch > newest.epoch ? 0 : newest.seq + 1;
}

const WHOLE_NUMBER = /^(0|[1-9][0-9]{0,15})$/;

/**
 * Reads an epoch or a seq of a producer: plain decimal, at most 2^53-1, one spelling a number.
 *
 * @returns the number, or null.
 */
export function parseCount(text: string): number | null {
  if (!WHOLE_NUMBER.test(text)) return null;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : null;
}

/** Longest id of a producer, and longest key, in characters. */
export const PRODUCER_ID_LENGTH_MAX = 256;

const PRODUCER_ID = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Whether a text may name a producer, or be a key: printable ASCII, without a space at either end. */
export function isProducerId(text: string): boolean {
  return text.length <= PRODUCER_ID_LENGTH_MAX && PRODUCER_ID.test(text);
}

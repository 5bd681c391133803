import { assert } from '../assert.js';

/** Characters of an epoch, and the random bytes that {@link makeEpoch} takes. */
export const EPOCH_LENGTH = 10;

/** 32 letters, so that 5 bits choose one without bias; i, l, o and u are left out as too easily misread. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/**
 * Makes an epoch, 10 characters of `[a-z0-9]`, from the first 10 bytes of `random`. Each gives 5 bits: 50 random bits
 * in all, where contract 1 asks for 40. An epoch is never used twice (I3), so the bytes must be cryptographically
 * random.
 */
export function makeEpoch(random: Uint8Array): string {
  assert(random.length >= EPOCH_LENGTH, 'an epoch takes 10 random bytes');
  let epoch = '';
  for (let i = 0; i < EPOCH_LENGTH; i++) epoch += ALPHABET[(random[i] as number) & 31];
  return epoch;
}

/**
 * What shows that a log has, or had, another entry in a place than this broker has taken up: it has lost some and given
 * their positions again, or its machines differ. They should not; those of NATS 2.9.10 do when their leader was cut off from
 * the others and given something meanwhile, which it keeps in the place of what those have taken. An id then has another
 * event where one of them is read than it has elsewhere, and whoever follows or reads one notices nothing.
 *
 * So each entry says who wrote the one that it follows, and it is seen where that is another one than was taken up or read.
 * Nobody can tell by then who has which of the two: the stream begins anew under another epoch (I3).
 */

import type { Link } from './newest-entry.js';

/** An entry where it lies, by who wrote it. */
export interface Known {
  readonly at: number;
  readonly entry: { readonly writer: string };
}

/** The one that it follows. */
interface Following {
  readonly entry: { readonly previous: number; readonly previousWriter: string };
}

export const CONTRADICTED = 'another entry is where one was that is known';

/** Whether an entry follows another one than is known in that place. */
export function followsOther({ entry: { previous, previousWriter } }: Following, known: Known): boolean {
  return previous === known.at && previousWriter !== known.entry.writer;
}

/** Whether two are different entries in one place. */
export function isOther(one: Known, other: Known): boolean {
  return one.at === other.at && one.entry.writer !== other.entry.writer;
}

/** What an entry says of the one that it follows. */
export function followedBy({ entry: { previous, previousWriter } }: Following): Known {
  return { at: previous, entry: { writer: previousWriter } };
}

/**
 * Whether an entry shows that the log has, or had, others than this broker has taken up: it has lost some, for who wrote an
 * entry had taken up the one that it names. That one is neither the newest nor the one before, but lies between them, or
 * lies there and is another; or it lay where the log does not go yet.
 */
export function contradicts(link: Link, newest: Link): boolean {
  const { at, entry } = link;
  const { previous, previousWriter } = entry;
  if (at <= newest.at) return isOther(link, newest);
  if (previous >= at) return true;
  if (previous === newest.at) return followsOther(link, newest);
  if (previous === newest.entry.previous) return previousWriter !== newest.entry.previousWriter;
  // What follows nothing may have been preceded by what has gone since, and others may name that.
  return newest.entry.previous > 0 && previous > newest.entry.previous && previous < newest.at;
}

/**
 * Whether an entry names one that was passed over as not counting. The one of before may have been lost with its position
 * given again, or the newest that counts.
 *
 * @param tailAt up to where entries were looked at.
 */
export function namesPassedOver({ entry: { previous } }: Link, newest: Link, tailAt: number): boolean {
  return previous > newest.at && previous <= tailAt;
}

/**
 * Memory for a stream that finds none. With a durable log a ring is a cache: what it holds and the log has can go, and
 * whoever reads it there goes to the log. So rings give way whose memory lies together, until a block of the wanted
 * size is free again. Without a log nothing is taken from a stream: what retention keeps has no other place.
 *
 * Called without any lock; each stream's is taken on its own, so that no two threads wait for each other.
 *
 * Cold path: the arena is full.
 */

import * as layout from './layout.js';
import { lock, unlock } from './mutex.js';
import { releaseRings } from './ring-growth.js';
import { committedSeq, evictTo, headSeq } from './ring-memory.js';
import type { Rings } from './rings.js';
import { f64At, i32At } from './rings.js';

/** Places that are looked at; then the search is given up, and goes on from there the next time. */
const REGIONS_MAX = 16;

export interface Wanted {
  /** log2 of the bytes of the block. */
  readonly order: number;
  /** Rings that were appended to later than this stay, Unix time in milliseconds. */
  readonly idleSinceMs: number;
}

/** @returns how many streams have given their rings back for it; 0: no such block could be freed. */
export function reclaim(rings: Rings, wanted: Wanted): number {
  for (let tries = 0; tries < REGIONS_MAX; tries++) {
    const owners = rings.arena.nextTaken(wanted.order);
    if (owners === null) return 0;
    if (!owners.every((slot) => hasOnlyCached(rings, slot, wanted.idleSinceMs))) continue;
    // An append may come in between: then that ring stays, and the next place is tried.
    if (owners.every((slot) => giveBack(rings, slot, wanted.idleSinceMs))) return owners.length;
  }
  return 0;
}

function hasOnlyCached(rings: Rings, slot: number, idleSinceMs: number): boolean {
  if (slot < 0) return false;
  const lockAt = i32At(slot, layout.LOCK_OFFSET);
  lock(rings.i32, lockAt);
  const cached = isCached(rings, slot, idleSinceMs);
  unlock(rings.i32, lockAt);
  return cached;
}

function giveBack(rings: Rings, slot: number, idleSinceMs: number): boolean {
  const lockAt = i32At(slot, layout.LOCK_OFFSET);
  lock(rings.i32, lockAt);
  const cached = isCached(rings, slot, idleSinceMs);
  if (cached) {
    evictTo(rings, slot, headSeq(rings, slot) + 1);
    releaseRings(rings, slot);
  }
  unlock(rings.i32, lockAt);
  return cached;
}

/** I5: what is not committed is nowhere else. */
function isCached(rings: Rings, slot: number, idleSinceMs: number): boolean {
  const lastActivityMs = rings.f64[f64At(slot, layout.LAST_ACTIVITY_MS_OFFSET)] as number;
  return committedSeq(rings, slot) === headSeq(rings, slot) && lastActivityMs <= idleSinceMs;
}

import { judgePublish, PRODUCER_WINDOW, type ProducerPosition, PUBLISH_DUPLICATE } from './producer.js';
import { KEY, PRODUCER, type RecordKind } from './producer-record.js';

/** Which publish of whom it is, by a digest that tells them apart. */
export interface BookClaim extends ProducerPosition {
  readonly kind: RecordKind;
  readonly digest: string;
}

/** First and last seq in the stream that a publish was given. */
export interface Place {
  readonly first: number;
  readonly last: number;
}

export interface ProducerBounds {
  /** By kind. */
  readonly countMax: readonly [number, number];
  readonly ttlMs: readonly [number, number];
}

interface Known {
  readonly epoch: number;
  readonly seq: number;
  /** Of publish s at s modulo the window, each with the position of the entry that the one which tells of it follows. */
  readonly places: (Place & { readonly after: number })[];
  readonly usedAtMs: number;
}

const KINDS: readonly RecordKind[] = [PRODUCER, KEY];

/**
 * What one stream of a replicated log remembers of who published (contract 3.4). It is what its entries say, one after
 * the other, so every broker remembers the same.
 */
export class ProducerBook {
  readonly #bounds: ProducerBounds;
  /** By kind; who published longest ago comes first. */
  readonly #known: readonly [Map<string, Known>, Map<string, Known>] = [new Map(), new Map()];

  constructor(bounds: ProducerBounds) {
    this.#bounds = bounds;
  }

  /** @returns a constant of producer.ts. */
  judge(claim: BookClaim): number {
    return judgePublish(claim, this.newestOf(claim));
  }

  newestOf({ kind, digest }: BookClaim): ProducerPosition | null {
    return this.#known[kind].get(digest) ?? null;
  }

  /** After PUBLISH_DUPLICATE. */
  placeOf(claim: BookClaim): Place | null {
    if (this.judge(claim) !== PUBLISH_DUPLICATE) return null;
    return this.#known[claim.kind].get(claim.digest)?.places[claim.seq % PRODUCER_WINDOW] ?? null;
  }

  /** Whether one more may be remembered beside `more` that are about to be. */
  hasRoomFor({ kind, digest }: BookClaim, more: number): boolean {
    const known = this.#known[kind];
    return known.has(digest) || known.size + more < this.#bounds.countMax[kind];
  }

  /** The publish was appended. */
  record(claim: BookClaim, place: Place, { after, atMs }: { after: number; atMs: number }): void {
    const known = this.#known[claim.kind];
    const before = known.get(claim.digest);
    const places = before?.epoch === claim.epoch ? before.places : [];
    places[claim.seq % PRODUCER_WINDOW] = { ...place, after };
    known.delete(claim.digest);
    known.set(claim.digest, { epoch: claim.epoch, seq: claim.seq, places, usedAtMs: atMs });
  }

  /** Forgets those whose time is over. */
  forget(nowMs: number): void {
    for (const kind of KINDS) {
      for (const [digest, { usedAtMs }] of this.#known[kind]) {
        if (usedAtMs + this.#bounds.ttlMs[kind] > nowMs) break;
        this.#known[kind].delete(digest);
      }
    }
  }

  /** Position after which entries tell of something remembered; null: none does. Looks at all. */
  oldestAfter(): number | null {
    let oldest: number | null = null;
    for (const kind of KINDS) {
      for (const { places } of this.#known[kind].values()) {
        for (const place of places) {
          if (place !== undefined) oldest = Math.min(oldest ?? place.after, place.after);
        }
      }
    }
    return oldest;
  }
}

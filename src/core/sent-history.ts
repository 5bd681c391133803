/**
 * What one connection of a subscription by prefix was sent (contract 4.11): enough to say where the subscriber was in each
 * stream after each of its ids, not only after the newest. Nobody knows which of them the peer has received.
 *
 * Ids are counted. A _step_ is an id with the stream that moved, and where to; ids that follow each other and move the same
 * stream by one event each, as those of a run do, are one step. When there are too many steps the oldest quarter goes
 * into the _base_, and ids below it are forgotten.
 */

import { assert } from '../assert.js';

/** Steps kept, some 100 KiB of them; at least three quarters as many are, whatever is sent. */
export const STEPS_MAX = 4096;

/** Where a subscriber is in a stream; of one that has ended, and was told so, nothing more comes. */
export interface SentPosition {
  readonly epoch: string;
  readonly seq: number;
  readonly ended: boolean;
}

/** States of a stream that are no seq: nothing was sent of it, or that it is gone; and that it has ended. */
const ABSENT = -1;
const ENDED = -2;

interface Track {
  readonly name: string;
  readonly epoch: string;
  /** At the base: a seq, ABSENT or ENDED. */
  base: number;
  /** It was told that it was closed. */
  isEnded: boolean;
  /** Nothing more comes of it, and nothing has to be remembered of it beyond its steps. */
  isGone: boolean;
}

/** A history as it travels between threads. */
export interface SentData {
  /** The lowest id that can be told. */
  baseCount: number;
  /** The newest. */
  count: number;
  readonly tracks: Map<number, Track>;
  nextTrack: number;
  /** The steps: first id of each, its track, and where that moved: a seq, which goes up by one with each id, or a state. */
  readonly counts: number[];
  readonly stepTracks: number[];
  readonly states: number[];
}

export class SentHistory {
  readonly data: SentData;
  readonly #stepsMax: number;

  constructor(data: SentData, stepsMax = STEPS_MAX) {
    this.data = data;
    this.#stepsMax = stepsMax;
  }

  /** A connection begins at these positions; `count` is the id that says so. */
  static begin(
    count: number,
    positions: ReadonlyMap<string, SentPosition>,
    stepsMax = STEPS_MAX,
  ): SentHistory {
    const data: SentData = {
      baseCount: count,
      count,
      tracks: new Map(),
      nextTrack: 0,
      counts: [],
      stepTracks: [],
      states: [],
    };
    for (const [name, { epoch, seq, ended }] of positions) {
      const base = ended ? ENDED : seq;
      data.tracks.set(data.nextTrack++, { name, epoch, base, isEnded: ended, isGone: false });
    }
    return new SentHistory(data, stepsMax);
  }

  /** A stream comes along. Until something of it is sent it is as if it were not there. @returns its track. */
  join(name: string, epoch: string): number {
    const track = this.data.nextTrack++;
    this.data.tracks.set(track, { name, epoch, base: ABSENT, isEnded: false, isGone: false });
    return track;
  }

  /** Streams that something has to be remembered of. */
  get streamCount(): number {
    let count = 0;
    for (const { isGone } of this.data.tracks.values()) if (!isGone) count++;
    return count;
  }

  /** The track of a stream; undefined where it has none. */
  trackOf(name: string, epoch: string): number | undefined {
    for (const [track, { name: own, epoch: its, isGone }] of this.data.tracks) {
      if (own === name && its === epoch && !isGone) return track;
    }
    return undefined;
  }

  /** An event, or a position, of a stream is sent. @returns its id. */
  move(track: number, seq: number): number {
    const { counts, stepTracks, states } = this.data;
    const last = counts.length - 1;
    const count = ++this.data.count;
    const before = states[last] ?? ABSENT;
    const continues =
      stepTracks[last] === track && before >= 0 && before + count - (counts[last] as number) === seq;
    if (!continues) this.#step(count, track, seq);
    return count;
  }

  /** It is sent that a stream was closed and that this was all of it. @returns the id of that. */
  end(track: number): number {
    this.#track(track).isEnded = true;
    return this.#step(++this.data.count, track, ENDED);
  }

  /** It is sent that a stream is no more. @returns the id of that. */
  drop(track: number): number {
    this.#track(track).isGone = true;
    return this.#step(++this.data.count, track, ABSENT);
  }

  /** Forgets of streams that have ended those that are no more: none is given a second time. */
  forgetEnded(isThere: (name: string, epoch: string) => boolean): void {
    for (const track of this.data.tracks.values()) {
      if (track.isEnded && !isThere(track.name, track.epoch)) track.isGone = true;
    }
  }

  /** Where the subscriber was after an id, by the names of the streams; null when that is not known. */
  at(count: number): Map<string, SentPosition> | null {
    const { baseCount, count: newest, tracks } = this.data;
    if (count < baseCount || count > newest) return null;
    const states = this.#statesAt(count);
    const positions = new Map<string, SentPosition>();
    for (const [track, { name, epoch }] of tracks) {
      const state = states.get(track) as number;
      // Of two of the same name the later one counts, as soon as something of it was sent.
      if (state !== ABSENT) positions.set(name, { epoch, seq: Math.max(0, state), ended: state === ENDED });
    }
    return positions;
  }

  #step(count: number, track: number, state: number): number {
    const { counts, stepTracks, states } = this.data;
    assert(this.data.tracks.has(track), 'what is sent is of a stream that has come along');
    counts.push(count);
    stepTracks.push(track);
    states.push(state);
    if (counts.length > this.#stepsMax) this.#fold(counts.length - Math.ceil((this.#stepsMax * 3) / 4));
    return count;
  }

  /** The oldest so many steps become the base. */
  #fold(steps: number): void {
    const { counts, stepTracks, states, tracks } = this.data;
    const baseCount = (counts[steps] as number) - 1;
    for (const [track, state] of this.#statesAt(baseCount)) this.#track(track).base = state;
    this.data.baseCount = baseCount;
    for (const list of [counts, stepTracks, states]) list.splice(0, steps);
    const stepping = new Set(stepTracks);
    for (const [track, { isGone }] of tracks) if (isGone && !stepping.has(track)) tracks.delete(track);
  }

  #statesAt(count: number): Map<number, number> {
    const { counts, stepTracks, states, tracks } = this.data;
    const at = new Map([...tracks].map(([track, { base }]) => [track, base]));
    for (let step = 0; step < counts.length && (counts[step] as number) <= count; step++) {
      const first = counts[step] as number;
      const last = Math.min(count, (counts[step + 1] ?? count + 1) - 1);
      const state = states[step] as number;
      at.set(stepTracks[step] as number, state < 0 ? state : state + last - first);
    }
    return at;
  }

  #track(track: number): Track {
    const known = this.data.tracks.get(track);
    assert(known !== undefined, 'a track is known for as long as something of it is sent');
    return known;
  }
}

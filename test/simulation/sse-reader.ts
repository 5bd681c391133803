import type { Position } from '#gapless/conformance/observation.js';
import { cursorOf } from '../support/cursor.js';
import { Following } from './following.js';
import type { World } from './world.js';

const RETRY_MS_MAX = 400;
/** Beyond any head. */
const FAR_AHEAD = 1_000_000;

/** One logical follower of a stream by SSE: it breaks, comes back with the last id that it was given, and tells the judge. */
export class SimulatedReader {
  /** Newest position that it was given. */
  position: Position | null = null;
  /** Whether it was told that this is the end of its stream. */
  isAtEnd = false;
  readonly stream: string;
  readonly name: string;
  readonly #world: World;
  readonly #types: string | null;
  readonly #inBand: boolean;
  readonly #start: 'earliest' | 'latest' | null;
  #connections = 0;
  #following: Following | null = null;

  constructor(world: World, name: string) {
    const { prng, options, streams } = world;
    this.#world = world;
    this.name = name;
    this.stream = prng.pick(streams);
    this.#types = prng.chance(options.filterChance) ? prng.pick(['a', 'a,b', 'message']) : null;
    this.#inBand = prng.chance(options.inBandChance);
    this.#start = prng.pick(['earliest', 'latest', null]);
    this.#later();
  }

  /** The connection that stands, by its name; null: none does. */
  get connection(): string | null {
    return this.#following?.isAnnounced ? this.#following.id : null;
  }

  /** Its connection is over: it comes back. */
  over(): void {
    this.#following = null;
    this.#later();
  }

  #later(): void {
    this.#world.after(this.#world.prng.below(RETRY_MS_MAX), () => this.#connect());
  }

  #connect(): void {
    const { prng, options } = this.#world;
    const id = `${this.name}#${++this.#connections}`;
    const asked = this.#world.happens(options.strangeCursorChance) ? this.#strangeCursor() : this.#cursor;
    const query = [
      ...(asked === null && this.#start !== null ? [`cursor=${this.#start}`] : []),
      ...(this.#types === null ? [] : [`types=${this.#types}`]),
      ...(this.#inBand ? ['on_unavailable=event'] : []),
    ];
    this.isAtEnd = false;
    const following = new Following(this, this.#world, { id, asked, types: this.#types?.split(',') ?? null });
    const connection = this.#world.request(
      {
        method: 'get',
        path: `/v1/streams/${this.stream}`,
        query: query.length === 0 ? undefined : query.join('&'),
        headers: { accept: 'text/event-stream', ...(asked === null ? {} : { 'last-event-id': asked }) },
      },
      following,
    );
    if (connection === null) return this.#later();
    this.#world.judge.observe({ kind: 'asked', by: id, stream: this.stream });
    this.#following = following;
    following.begin(connection, {
      breakAfterBytes: this.#world.happens(options.breakChance) ? prng.below(4000) : null,
      breakAfterMs: this.#world.happens(options.breakChance / 2) ? prng.below(3000) : null,
    });
  }

  get #cursor(): string | null {
    return this.position === null ? null : cursorOf(this.position.epoch, this.position.seq);
  }

  /** A cursor of another time: behind, ahead, of another epoch. */
  #strangeCursor(): string | null {
    const { prng } = this.#world;
    if (this.position === null) return prng.chance(0.5) ? 'aaaaaaaaaa.3' : null;
    const { epoch, seq } = this.position;
    const cursor = prng.pick([
      cursorOf(epoch, prng.below(seq + 1)),
      cursorOf(epoch, seq + FAR_AHEAD + prng.below(1000)),
      'aaaaaaaaaa.3',
    ]);
    return cursor;
  }
}

import type { Position } from '#gapless/conformance/observation.js';
import { cursorOf, positionOf } from '../support/cursor.js';
import { type SseEvent, SseParser } from '../support/sse-parser.js';
import type { Connection, ResponseHead } from './connection.js';
import type { World } from './world.js';

interface Problem {
  readonly code: string;
  readonly reason: string;
  readonly cursor: string;
  readonly epoch: string | null;
  readonly floor: number | null;
  readonly head: number | null;
}

/** One that hears nothing for several heartbeats takes the connection for dead. */
const HEARTBEATS_MISSED_MAX = 3;
const PATIENCE_MS = 3000;
const RETRY_MS_MAX = 400;
/** Beyond any head. */
const FAR_AHEAD = 1_000_000;

/** One logical follower of a stream by SSE: it breaks, comes back with the last id that it was given, and tells the judge. */
export class SimulatedReader {
  /** Newest position that it was given. */
  position: Position | null = null;
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

  /** Whether it was told that its stream is at its end where it stands. */
  isAtEnd = false;

  later(): void {
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

/** One connection of a reader. */
class Following {
  isAnnounced = false;
  readonly id: string;
  readonly #reader: SimulatedReader;
  readonly #world: World;
  readonly #asked: string | null;
  /** Null: it wants all. */
  readonly #types: readonly string[] | null;
  readonly #parser: SseParser;
  #connection: Connection | null = null;
  #head: ResponseHead | null = null;
  #body: Uint8Array[] = [];
  #bytesLeft = Number.POSITIVE_INFINITY;
  #heardAtMs = 0;
  #isStuck = false;
  #isOver = false;
  #last = 0;

  constructor(
    reader: SimulatedReader,
    world: World,
    { id, asked, types }: { id: string; asked: string | null; types: readonly string[] | null },
  ) {
    this.#reader = reader;
    this.#world = world;
    this.id = id;
    this.#asked = asked;
    this.#types = types;
    this.#parser = new SseParser({
      onEvent: (event) => this.#event(event),
      onIdOnly: (cursor) => this.#idOnly(cursor),
      onRetry: () => undefined,
      onComment: () => undefined,
      onLineWithoutColon: (line) => world.judge.problem(`a line without a colon: ${line}`),
    });
  }

  begin(
    connection: Connection,
    breaks: { breakAfterBytes: number | null; breakAfterMs: number | null },
  ): void {
    const { prng, options } = this.#world;
    this.#connection = connection;
    this.#bytesLeft = breaks.breakAfterBytes ?? Number.POSITIVE_INFINITY;
    this.#heardAtMs = this.#world.schedule.nowMs;
    if (breaks.breakAfterMs !== null) this.#world.after(breaks.breakAfterMs, () => this.#break());
    if (this.#world.happens(options.stuckChance)) {
      this.#world.after(prng.below(2000), () => this.#getStuck());
    }
    this.#watch();
  }

  head(head: ResponseHead): void {
    this.#heardAtMs = this.#world.schedule.nowMs;
    this.#head = head;
  }

  bytes(chunk: Uint8Array): void {
    this.#heardAtMs = this.#world.schedule.nowMs;
    const seen = chunk.subarray(0, Math.min(chunk.length, this.#bytesLeft));
    this.#bytesLeft -= seen.length;
    if (this.#isStream) this.#parser.push(seen);
    else this.#body.push(seen);
    if (this.#bytesLeft === 0) this.#break();
  }

  ended(how: 'end' | 'broken'): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (how === 'end' && !this.#isStream) this.#answered(this.#head as ResponseHead);
    this.#reader.later();
  }

  get #isStream(): boolean {
    return this.#head?.headers['content-type'] === 'text/event-stream';
  }

  /** The reader leaves, whether the broker hears of it or not. */
  #break(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#parser.stop();
    this.#connection?.abandon(!this.#world.happens(this.#world.options.halfOpenChance));
    this.#reader.later();
  }

  #getStuck(): void {
    if (this.#isOver || !this.#world.on) return;
    const ms = this.#world.prng.below(this.#world.prng.chance(0.2) ? 20_000 : 2000);
    this.#isStuck = true;
    this.#connection?.pause(ms);
    this.#world.after(ms, () => {
      this.#isStuck = false;
      this.#heardAtMs = this.#world.schedule.nowMs;
    });
  }

  #watch(): void {
    const silenceMsMax = HEARTBEATS_MISSED_MAX * this.#world.options.heartbeatIntervalMs + PATIENCE_MS;
    this.#world.after(silenceMsMax / 2, () => {
      if (this.#isOver) return;
      if (!this.#isStuck && this.#world.schedule.nowMs - this.#heardAtMs > silenceMsMax) this.#break();
      else this.#watch();
    });
  }

  #answered({ status, headers }: ResponseHead): void {
    const { judge } = this.#world;
    const text = Buffer.concat(this.#body).toString();
    if (status === 204) {
      const epoch = headers['gapless-epoch'] ?? '';
      const end = { epoch, seq: Number(headers['gapless-head']) };
      this.#announce(end);
      this.#ended('closed', end);
      return;
    }
    const problem = JSON.parse(text) as Problem;
    if (status === 410) this.#refused(problem);
    else if (status === 404 || status === 503 || status === 507) return;
    else judge.problem(`${this.id}: ${status} ${text}`);
  }

  #refused(problem: Problem): void {
    const { reason, cursor, epoch, floor, head } = problem;
    if (cursor !== this.#asked && !this.isAnnounced)
      this.#world.judge.problem(`refused ${cursor}, not ${this.#asked}`);
    this.#world.judge.observe({
      kind: 'refused',
      connection: this.id,
      reader: this.#reader.name,
      stream: this.#reader.stream,
      reason,
      cursor: positionOf(cursor),
      epoch,
      floor: floor ?? 0,
      head: head ?? 0,
    });
    this.#reader.position = null;
  }

  /** It was accepted where it asked to be, or, where it did not say, where it is told to be. */
  #announce(told: Position): void {
    const headers = this.#head?.headers ?? {};
    const { seq } = this.#asked === null ? told : positionOf(this.#asked);
    this.isAnnounced = true;
    this.#last = seq;
    this.#world.judge.observe({
      kind: 'connected',
      connection: this.id,
      reader: this.#reader.name,
      stream: this.#reader.stream,
      epoch: headers['gapless-epoch'] ?? '',
      after: seq,
      joined: this.#asked === null,
      ...(this.#types === null ? {} : { types: this.#types }),
      floor: Number(headers['gapless-floor']),
      head: Number(headers['gapless-head']),
    });
  }

  #idOnly(cursor: string): void {
    const position = positionOf(cursor);
    if (!this.isAnnounced) this.#announce(position);
    else if (position.seq !== this.#last) {
      if (this.#types === null) this.#world.judge.problem(`${this.id}: ${cursor} without its event`);
      else this.#world.judge.observe({ kind: 'advanced', connection: this.id, ...position });
    }
    this.#last = position.seq;
    this.#reader.position = position;
  }

  #event(event: SseEvent): void {
    switch (event.type) {
      case 'resume_unavailable':
        this.#refused(JSON.parse(event.data) as Problem);
        // What comes after this point follows without a hole (contract 4.5).
        this.#reader.position = positionOf(event.id);
        return;
      case 'stream_closed':
      case 'stream_deleted': {
        const { cursor } = JSON.parse(event.data) as { cursor: string };
        return this.#ended(event.type === 'stream_closed' ? 'closed' : 'deleted', positionOf(cursor));
      }
    }
    if (!this.isAnnounced) this.#world.judge.problem(`${this.id}: an event before the position`);
    const position = positionOf(event.id);
    this.#last = position.seq;
    this.#world.judge.observe({ kind: 'event', connection: this.id, ...position, content: event.data });
    this.#reader.position = position;
  }

  #ended(reason: 'closed' | 'deleted', last: Position): void {
    this.#world.judge.observe({ kind: 'ended', connection: this.id, reason, last });
    this.#reader.isAtEnd = reason === 'closed';
  }
}

import type { Position } from '#gapless/conformance/observation.js';
import { positionOf } from '../support/cursor.js';
import { type SseEvent, SseParser } from '../support/sse-parser.js';
import type { Connection, Peer, ResponseHead } from './connection.js';
import type { SimulatedReader } from './sse-reader.js';
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

/** One connection of a reader. */
export class Following implements Peer {
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
    this.#reader.over();
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
    this.#reader.over();
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

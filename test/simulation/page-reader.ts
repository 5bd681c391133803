import type { Position } from '#gapless/conformance/observation.js';
import { cursorOf, positionOf } from '../support/cursor.js';
import type { Page, Problem } from '../support/gapless-client.js';
import type { Connection, ResponseHead } from './connection.js';
import type { World } from './world.js';

const PAUSE_MS_MAX = 500;
const WAIT_SECONDS_MAX = 3;
const PATIENCE_MS = 20_000;

/** One logical follower that reads page after page, and waits for events at the end. */
export class SimulatedPageReader {
  position: Position | null = null;
  readonly stream: string;
  readonly name: string;
  readonly #world: World;
  #pages = 0;
  #stopped: (() => void) | null = null;

  constructor(world: World, name: string, stream: string) {
    this.#world = world;
    this.name = name;
    this.stream = stream;
    this.#later();
  }

  /** The name that the last page goes by with the judge. */
  get connection(): string {
    return `${this.name}#${this.#pages}`;
  }

  /** It reads to the head once more, and calls back. */
  finish(done: () => void): void {
    this.#stopped = done;
  }

  #later(): void {
    this.#world.after(this.#world.prng.below(PAUSE_MS_MAX), () => this.#read());
  }

  #read(): void {
    const { prng, options } = this.#world;
    this.#pages++;
    const asked = this.position;
    const query = [
      ...(asked === null ? [] : [`cursor=${cursorOf(asked.epoch, asked.seq)}`]),
      ...(prng.chance(0.5) ? [`limit=${prng.between(1, 20)}`] : []),
      ...(this.#stopped === null && prng.chance(0.3) ? [`wait=${prng.between(1, WAIT_SECONDS_MAX)}`] : []),
    ];
    let head: ResponseHead | null = null;
    const parts: Uint8Array[] = [];
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#later();
    };
    const connection: Connection | null = this.#world.request(
      {
        method: 'get',
        path: `/v1/streams/${this.stream}`,
        query: query.length === 0 ? undefined : query.join('&'),
        headers: { accept: 'application/json' },
      },
      {
        head: (received) => {
          head = received;
        },
        bytes: (chunk) => parts.push(chunk),
        ended: (how) => {
          if (isOver) return;
          const isLast = how === 'end' && this.#answered(head as ResponseHead | null, parts);
          if (!isLast) return over();
          isOver = true;
          this.#stopped?.();
        },
      },
    );
    if (connection === null) return over();
    this.#world.judge.observe({ kind: 'asked', by: this.connection, stream: this.stream });
    const isBroken = this.#world.happens(options.breakChance);
    this.#world.after(isBroken ? prng.below(1000) : PATIENCE_MS, () => {
      if (isOver) return;
      connection.abandon(!this.#world.happens(options.halfOpenChance));
      over();
    });
  }

  /** @returns whether this was the last page: up to the head, when it was told to finish. */
  #answered(head: ResponseHead | null, parts: readonly Uint8Array[]): boolean {
    const text = Buffer.concat(parts).toString();
    if (head?.status === 200) {
      const page = JSON.parse(text) as Page;
      this.#observe(page, head.headers);
      return this.#stopped !== null && page.upToDate;
    }
    if (head?.status === 410) this.#refused(JSON.parse(text) as Problem);
    else if (head?.status === 404) {
      if (this.#stopped !== null) return true;
    } else if (head?.status !== 503 && head?.status !== 507)
      this.#world.judge.problem(`${this.connection}: ${head?.status} ${text}`);
    return false;
  }

  #observe({ events, next }: Page, headers: ResponseHead['headers']): void {
    const { judge } = this.#world;
    const { connection, stream } = this;
    const first = events[0] === undefined ? positionOf(next) : positionOf(events[0].id);
    const after = this.position?.seq ?? (events[0] === undefined ? first.seq : first.seq - 1);
    judge.observe({
      kind: 'connected',
      connection,
      reader: this.name,
      stream,
      epoch: first.epoch,
      after,
      joined: this.position === null,
      floor: Number(headers['gapless-floor']),
      head: Number(headers['gapless-head']),
    });
    for (const { id, data } of events) {
      judge.observe({ kind: 'event', connection, ...positionOf(id), content: data });
    }
    const end = positionOf(next);
    if (end.seq !== after + events.length) {
      judge.problem(`${connection}: ${events.length} events after ${after}, but next is ${next}`);
    }
    this.position = end;
  }

  #refused({ reason = '', cursor = '', epoch = null, floor = 0, head = 0 }: Problem): void {
    this.#world.judge.observe({
      kind: 'refused',
      connection: this.connection,
      reader: this.name,
      stream: this.stream,
      reason,
      cursor: positionOf(cursor),
      epoch,
      floor: floor ?? 0,
      head: head ?? 0,
    });
    this.position = null;
  }
}

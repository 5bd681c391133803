import type { ResponseHead } from './connection.js';
import type { Request } from './http-library.js';
import type { World } from './world.js';

/** Where a stream stands, as contract 2.2 says it. */
export interface StreamState {
  readonly epoch: string;
  readonly floor: number;
  readonly logFloor: number | null;
  readonly committed: number;
  readonly head: number;
  readonly closed: boolean;
}

const PAUSE_MS_MAX = 1000;
const PATIENCE_MS = 15_000;

/** Looks at streams now and then, and creates, closes and deletes some. */
export class SimulatedOperator {
  readonly #world: World;
  #questions = 0;

  constructor(world: World) {
    this.#world = world;
    this.#later();
  }

  /** Asks where a stream stands; null: there is no such stream. */
  ask(stream: string, observer: string, answered: (state: StreamState | null | 'unknown') => void): void {
    const { judge } = this.#world;
    judge.observe({ kind: 'asked', by: observer, stream });
    this.#send({ method: 'get', path: `/v1/streams/${stream}/state` }, (head, body) => {
      if (head === null || (head.status !== 200 && head.status !== 404)) return answered('unknown');
      if (head.status === 404) return answered(null);
      const state = JSON.parse(body) as StreamState;
      const { epoch, floor, logFloor, committed } = state;
      judge.observe({
        kind: 'positions',
        observer,
        stream,
        epoch,
        floor: Math.min(floor, logFloor ?? floor),
        head: committed,
      });
      answered(state);
    });
  }

  #later(): void {
    this.#world.after(this.#world.prng.below(PAUSE_MS_MAX), () => {
      if (!this.#world.on) return;
      this.#act(() => this.#later());
    });
  }

  #act(done: () => void): void {
    const { prng, options, streams, judge } = this.#world;
    const stream = prng.pick(streams);
    const path = `/v1/streams/${stream}`;
    if (prng.chance(options.deleteChance)) {
      judge.mayBeginAnew(stream);
      return this.#send({ method: 'del', path }, done);
    }
    if (prng.chance(options.closeChance)) return this.#send({ method: 'post', path: `${path}/close` }, done);
    if (prng.chance(options.createChance)) {
      const retention = { events: prng.below(100), bytes: prng.below(options.streamBytesMax / 2) };
      const body = Buffer.from(JSON.stringify({ retention }));
      return this.#send({ method: 'put', path, headers: { 'content-type': 'application/json' }, body }, done);
    }
    this.ask(stream, 'operator', done);
  }

  #send(request: Request, answered: (head: ResponseHead | null, body: string) => void): void {
    const id = ++this.#questions;
    let head: ResponseHead | null = null;
    const parts: Uint8Array[] = [];
    let isOver = false;
    const over = (how: 'end' | 'broken'): void => {
      if (isOver) return;
      isOver = true;
      if (how === 'end' && head?.status === 500) this.#world.judge.problem(`operator ${id}: 500`);
      answered(how === 'end' ? head : null, Buffer.concat(parts).toString());
    };
    const connection = this.#world.request(request, {
      head: (received) => {
        head = received;
      },
      bytes: (chunk) => parts.push(chunk),
      ended: over,
    });
    if (connection === null) {
      this.#world.after(100, () => over('broken'));
      return;
    }
    this.#world.after(PATIENCE_MS, () => {
      if (isOver) return;
      connection.abandon(true);
      over('broken');
    });
  }
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as layout from '#gapless/ring/layout.js';
import { removeStream } from '#gapless/ring/lifecycle.js';
import { FrameRun, READ_CAUGHT_UP, READ_OK, RingReader } from '#gapless/ring/read.js';
import { i32At, type StreamHandle } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import { RingStage } from './ring-stage.js';

const SLOTS = 2;
const stage = new RingStage(64 * 1024, { streamsMax: SLOTS });

/** An actor does one step each time that it is let; false: it has nothing to do until somebody else did. */
interface Actor {
  canStep(): boolean;
  step(): void;
}

interface World {
  readonly wakes: Wakes;
  readonly streams: readonly StreamHandle[];
  /** Newest seq that the edge has read, by slot. */
  readonly readSeq: number[];
  /** The cells of the edge's queue. */
  readonly cells: Int32Array;
}

/** Appends an event to each of the slots in turn, which marks it, and tells of each in a step of its own. */
class Publisher implements Actor {
  readonly #world: World;
  readonly #slots: readonly number[];
  #steps = 0;
  #toTell = 0;

  constructor(world: World, slots: readonly number[]) {
    this.#world = world;
    this.#slots = slots;
  }

  canStep(): boolean {
    return this.#steps < 2 * this.#slots.length;
  }

  step(): void {
    const slot = this.#slots[this.#steps >> 1] as number;
    if (this.#steps % 2 === 0) {
      stage.append(this.#world.streams[slot] as StreamHandle, 'x');
      this.#toTell = stage.appender.toTell;
    } else {
      this.#world.wakes.tell(slot, this.#toTell, -1);
    }
    this.#steps++;
  }
}

/** What an edge might get wrong. */
type Mistake = 'none' | 'does not look again' | 'takes its ticket late' | 'settles what it did not take';

/**
 * take, read, settle, look again, sleep: as the rules of the wake queue want it, or with a mistake. It begins with a
 * reader that has just come to the first stream, so it reads that without having been told of anything.
 */
class Edge implements Actor {
  readonly #world: World;
  readonly #mistake: Mistake;
  readonly #reader = new RingReader(stage.rings);
  readonly #run = new FrameRun(1024);
  #next: () => void = () => this.#begin();
  #slot = 0;
  #taken = false;
  #ticket = 0;
  #asleep = false;

  constructor(world: World, mistake: Mistake) {
    this.#world = world;
    this.#mistake = mistake;
  }

  canStep(): boolean {
    return !this.#asleep || this.#world.wakes.ticket(0) !== this.#ticket;
  }

  step(): void {
    this.#asleep = false;
    this.#next();
  }

  #begin(): void {
    if (this.#mistake !== 'takes its ticket late') this.#ticket = this.#world.wakes.ticket(0);
    this.#next = this.#slot < 0 ? () => this.#take() : () => this.#read();
  }

  #take(): void {
    this.#slot = this.#world.wakes.take(0);
    this.#taken = this.#slot >= 0;
    this.#next = this.#taken ? () => this.#read() : () => this.#sleep();
  }

  #read(): void {
    const { streams, readSeq } = this.#world;
    const stream = streams[this.#slot] as StreamHandle;
    const found = this.#reader.read(stream, readSeq[this.#slot] as number, 1024, this.#run);
    assert.ok(found === READ_OK || found === READ_CAUGHT_UP);
    readSeq[this.#slot] = this.#reader.committedSeq;
    const settles = this.#taken || this.#mistake === 'settles what it did not take';
    this.#next = settles ? () => this.#settle() : () => this.#take();
  }

  #settle(): void {
    this.#world.wakes.settle(this.#slot, 0);
    // From here on an append marks the slot again and queues it: what the second look finds is read, not settled.
    this.#taken = false;
    this.#next = this.#mistake === 'does not look again' ? () => this.#take() : () => this.#lookAgain();
  }

  #lookAgain(): void {
    const { streams, readSeq } = this.#world;
    this.#reader.look(streams[this.#slot] as StreamHandle);
    const behind = this.#reader.committedSeq > (readSeq[this.#slot] as number);
    this.#next = behind ? () => this.#read() : () => this.#take();
  }

  #sleep(): void {
    const { wakes } = this.#world;
    if (this.#mistake === 'takes its ticket late') this.#ticket = wakes.ticket(0);
    this.#asleep = wakes.ticket(0) === this.#ticket;
    this.#next = () => this.#begin();
  }
}

/** What one interleaving came to. */
interface Ending {
  readonly readSeq: readonly number[];
  /** Nothing is left queued or marked. */
  readonly idle: boolean;
  /** Whether a slot stood in two places of the queue at some moment. */
  readonly queuedTwice: boolean;
}

/**
 * Runs the actors in every order there is, one step at a time: replays the choices made so far, then takes the first
 * open one at each step, and goes on with the last choice that has an alternative.
 * @returns the number of orders.
 */
function inEveryOrder(
  cast: (world: World) => readonly Actor[],
  judge: (ending: Ending, shown: string) => void,
): number {
  const choices: { taken: number; open: number }[] = [];
  for (let orders = 1; ; orders++) {
    const world = openWorld();
    const actors = cast(world);
    let queuedTwice = false;
    for (let depth = 0; ; depth++) {
      const able = actors.filter((actor) => actor.canStep());
      if (able.length === 0) break;
      choices[depth] ??= { taken: 0, open: able.length };
      assert.equal(choices[depth]?.open, able.length, 'the same steps lead to the same place');
      (able[choices[depth]?.taken as number] as Actor).step();
      queuedTwice ||= world.streams.some(({ slot }) => isTwiceIn(world.cells, slot + 1));
    }
    judge({ ...closeWorld(world), queuedTwice }, choices.map(({ taken }) => taken).join(''));
    while (choices.length > 0 && choices.at(-1)?.taken === (choices.at(-1)?.open as number) - 1)
      choices.pop();
    const last = choices.at(-1);
    if (last === undefined) return orders;
    last.taken++;
  }
}

function openWorld(): World {
  const buffer = createWakes(1, SLOTS);
  const wakes = new Wakes(buffer, stage.rings);
  const streams = Array.from({ length: SLOTS }, (_, slot) => stage.open({ slot }));
  for (const { slot } of streams) wakes.addInterest(slot, 0);
  const cells = new Int32Array(buffer, layout.QUEUE_CELLS_OFFSET, 2 * SLOTS);
  return { wakes, streams, readSeq: streams.map(() => 0), cells };
}

function closeWorld({ wakes, streams, readSeq }: World): Omit<Ending, 'queuedTwice'> {
  let idle = wakes.take(0) === -1;
  for (const stream of streams) {
    const dirtyAt = i32At(stream.slot, layout.DIRTY_MASK_OFFSET);
    idle &&= stage.rings.i32[dirtyAt] === 0;
    stage.rings.i32[dirtyAt] = 0;
    removeStream(stage.rings, stream);
  }
  return { readSeq, idle };
}

function isTwiceIn(cells: Int32Array, content: number): boolean {
  const first = cells.indexOf(content);
  return first >= 0 && cells.indexOf(content, first + 1) >= 0;
}

/** How often each slot occurs. */
function countsOf(slots: readonly number[]): number[] {
  return Array.from({ length: SLOTS }, (_, slot) => slots.filter((other) => other === slot).length);
}

for (const publishers of [[[0, 0, 0]], [[0, 1, 0]], [[0], [0]], [[0], [1]]]) {
  const shown = publishers.map((slots) => `events to ${slots.join(', ')}`).join(' beside ');
  test(`W1 no append goes unread in any order of steps of an edge and of ${shown}`, () => {
    const appended = countsOf(publishers.flat());
    const orders = inEveryOrder(
      (world) => [...publishers.map((slots) => new Publisher(world, slots)), new Edge(world, 'none')],
      ({ readSeq, idle, queuedTwice }, order) => {
        assert.deepEqual(readSeq, appended, `all is read in the order ${order}`);
        assert.ok(idle, `nothing is left queued or marked in the order ${order}`);
        assert.ok(!queuedTwice, `each slot is queued at most once in the order ${order}`);
      },
    );
    assert.ok(orders > 1000, `${orders} orders`);
  });
}

/** In how many orders an edge with this mistake breaks the rule. */
function countBroken(mistake: Mistake, isBroken: (ending: Ending) => boolean): number {
  let broken = 0;
  inEveryOrder(
    (world) => [new Publisher(world, [0, 0]), new Edge(world, mistake)],
    (ending) => {
      if (isBroken(ending)) broken++;
    },
  );
  return broken;
}

for (const mistake of ['does not look again', 'takes its ticket late'] as const) {
  test(`an edge that ${mistake} leaves an append unread in some order, so these orders can tell`, () => {
    assert.ok(countBroken(mistake, ({ readSeq }) => readSeq[0] !== 2) > 0);
  });
}

test('W1 an edge that settles what it did not take has a slot queued twice in some order', () => {
  assert.ok(countBroken('settles what it did not take', ({ queuedTwice }) => queuedTwice) > 0);
});

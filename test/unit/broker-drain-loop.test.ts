import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DrainLoop } from '#gapless/broker/drain-loop.js';
import { EdgeStream } from '#gapless/broker/edge-stream.js';
import type { FanOut } from '#gapless/broker/fan-out.js';
import type { Wakes } from '#gapless/ring/wake-queue.js';

const CONFIG = { retention: { events: 0, bytes: 0, ageMs: 0 }, overflow: 'evict', ttlMs: 0 } as const;

function streamOf(name: string, generation: number): EdgeStream {
  return new EdgeStream({ name, slot: 0, generation, epoch: `${name}epoch`, config: CONFIG });
}

/** A loop over one slot, whose queue, directory and fan-out are the test's. Says what it did, in order. */
class LoopStage {
  readonly said: string[] = [];
  /** Who has the slot. */
  inSlot: EdgeStream | undefined;
  /** Slots that the edge will be told of. */
  readonly queue: number[] = [];
  onDrain: (stream: EdgeStream) => void = () => {};
  /** Whether a look says that there is more. */
  hasMore: (stream: EdgeStream) => boolean = () => false;
  readonly loop: DrainLoop;
  #deferred: (() => void)[] = [];

  constructor() {
    const wakes: Pick<Wakes, 'ticket' | 'take' | 'settle' | 'wait'> = {
      ticket: () => 0,
      take: () => this.queue.shift() ?? -1,
      settle: () => this.said.push('settle unread'),
      wait: () => new Promise(() => {}),
    };
    const fanOut: Pick<FanOut, 'beginTurn' | 'endTurn' | 'turnIsOver' | 'drain'> = {
      beginTurn: () => {},
      endTurn: () => {},
      turnIsOver: false,
      drain: (stream) => {
        this.said.push(`drain ${stream.name}`);
        this.onDrain(stream);
        return true;
      },
    };
    this.loop = new DrainLoop({
      edge: 0,
      wakes: wakes as Wakes,
      fanOut: fanOut as FanOut,
      streamInSlot: () => this.inSlot,
      settle: (stream) => {
        this.said.push(`settle ${stream.name}`);
        return !this.hasMore(stream);
      },
      settled: (stream) => this.said.push(`settled ${stream.name}`),
      defer: (callback) => this.#deferred.push(callback),
    });
  }

  /** Turns until there is nothing to do. */
  turns(): void {
    this.loop.schedule();
    for (let count = 0; this.#deferred.length > 0; count++) {
      assert.ok(count < 100, 'a loop with nothing to do comes to rest');
      for (const turn of this.#deferred.splice(0)) turn();
    }
  }
}

test('W1 news of a slot that another stream has by the end of the drain is looked for in that one', () => {
  const stage = new LoopStage();
  const [old, next] = [streamOf('old', 1), streamOf('next', 2)];
  stage.inSlot = old;
  stage.queue.push(0);
  stage.onDrain = () => {
    stage.inSlot = next;
  };
  let looks = 0;
  stage.hasMore = () => ++looks === 1;
  stage.turns();
  // The mark was set once, perhaps by an append to the new stream: it is cleared when that one was read to the end.
  assert.deepEqual(stage.said, [
    'drain old',
    'drain next',
    'settle next',
    'drain next',
    'settle next',
    'settled next',
  ]);

  stage.said.length = 0;
  stage.queue.push(0);
  stage.turns();
  assert.deepEqual(stage.said, ['drain next', 'settle next', 'settled next'], 'and told of again');
});

test('W1 a stream that is drained for a reader, without news, is settled only once its slot was taken', () => {
  const stage = new LoopStage();
  const stream = streamOf('s', 1);
  stage.inSlot = stream;
  stage.loop.activate(stream);
  stage.turns();
  assert.deepEqual(stage.said, ['drain s', 'settled s']);
});

test('W1 news of a slot that nobody here knows is settled at once', () => {
  const stage = new LoopStage();
  stage.queue.push(0);
  stage.turns();
  assert.deepEqual(stage.said, ['settle unread']);
});

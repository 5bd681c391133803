import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Counter } from '#gapless/ring/counters.js';
import * as layout from '#gapless/ring/layout.js';
import { i32At } from '#gapless/ring/rings.js';
import { FakeSink } from './broker-fake-sink.js';
import { BrokerStage, boundReads, type StageEdge, type Subscriber } from './broker-stage.js';

const EDGES = 2;
const NAMES = ['a', 'b', 'c'] as const;
const STREAMS_MAX = 3;

interface Follower extends Subscriber {
  readonly edge: StageEdge;
  readonly startCursor: number;
}

/** Two edges over three slots, driven at random; every text that was published is remembered by its epoch and seq. */
class Play {
  readonly stage: BrokerStage;
  readonly followers: Follower[] = [];
  readonly #logs = new Map<string, string[]>();
  /** The edge that is in its turn: it is one thread, so nothing else happens on it meanwhile. */
  #turning: StageEdge | null = null;
  #texts = 0;

  constructor(retentionEvents: number) {
    this.stage = new BrokerStage({
      edges: EDGES,
      memoryBytes: 2 ** 18,
      streamsMax: STREAMS_MAX,
      streamBytesMax: 4096,
      publishBytesMax: 2048,
      writeBytesMax: 1000,
      heartbeatIntervalMs: 100,
      retention: { events: retentionEvents },
    });
  }

  edge(index: number): StageEdge | null {
    const edge = this.stage.edges[index] as StageEdge;
    return edge === this.#turning ? null : edge;
  }

  publish(edge: StageEdge, name: string, count: number, size: number): void {
    const stream = edge.stream(name);
    const texts = Array.from({ length: count }, () => `${this.#texts++}`.padEnd(size, '.'));
    const closed = edge.broker.positions(stream)?.closed;
    if (closed) return;
    edge.publish(stream, ...texts);
    this.logOf(stream).push(...texts);
  }

  subscribe(edge: StageEdge, name: string, back: number, tellUnavailable: boolean): void {
    const stream = edge.stream(name);
    const at = edge.broker.positions(stream);
    assert.ok(at !== null);
    const cursor = Math.max(at.floor - 1, at.committed - back);
    // A request at the end of a closed stream is answered without a subscription.
    if (at.closed && cursor === at.committed) return;
    const sink = new FakeSink();
    this.followers.push({
      ...edge.subscribe(stream, { cursor, tellUnavailable, sink }),
      edge,
      startCursor: cursor,
    });
  }

  turn(edge: StageEdge): void {
    this.#turning = edge;
    edge.turn();
    this.#turning = null;
  }

  logOf({ epoch }: { epoch: string }): string[] {
    let log = this.#logs.get(epoch);
    if (log === undefined) this.#logs.set(epoch, (log = []));
    return log;
  }

  pick(index: number): Follower | undefined {
    const alive = this.followers.filter(({ subscription }) => subscription.state !== 'ended');
    const follower = alive[index % Math.max(1, alive.length)];
    return follower?.edge === this.#turning ? undefined : follower;
  }

  /** Everybody drains and reads to the end. */
  finish(): void {
    this.stage.settle();
    for (const follower of this.followers) {
      follower.sink.onWrite = () => {};
      if (follower.subscription.state === 'stalled') follower.edge.drained(follower);
      follower.sink.takes = true;
    }
    this.stage.settle();
    for (const edge of this.stage.edges) edge.ticks(1);
    this.stage.settle();
  }
}

interface Step {
  readonly shown: string;
  readonly run: (play: Play) => void;
}

const edges = fc.nat(EDGES - 1);
const names = fc.constantFrom(...NAMES);

/** What may also happen while another edge is in the midst of its turn. */
const concurrent: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(edges, names, fc.integer({ min: 1, max: 6 }), fc.nat(300))
      .map(([edge, name, count, size]) => ({
        shown: `edge ${edge} publishes ${count} of ${size} bytes to ${name}`,
        run: (play: Play) => onEdge(play, edge, (at) => play.publish(at, name, count, size)),
      })),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(edges, names, fc.oneof(fc.nat(3), fc.nat(30)), fc.boolean())
      .map(([edge, name, back, told]) => ({
        shown: `edge ${edge} subscribes to ${name} from ${back} back`,
        run: (play: Play) => onEdge(play, edge, (at) => play.subscribe(at, name, back, told)),
      })),
  },
  {
    weight: 1,
    arbitrary: names.map((name) => ({
      shown: `close ${name}`,
      run: (play: Play) => void play.stage.directory.close(name),
    })),
  },
  {
    weight: 1,
    arbitrary: names.map((name) => ({
      shown: `remove ${name}`,
      run: (play: Play) => void play.stage.directory.remove(name),
    })),
  },
);

function onEdge(play: Play, index: number, run: (edge: StageEdge) => void): void {
  const edge = play.edge(index);
  if (edge !== null) run(edge);
}

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: concurrent },
  {
    weight: 6,
    arbitrary: edges.map((edge) => ({
      shown: `turn of edge ${edge}`,
      run: (play: Play) => onEdge(play, edge, (at) => play.turn(at)),
    })),
  },
  {
    weight: 1,
    arbitrary: edges.map((edge) => ({
      shown: `tick of edge ${edge}`,
      run: (play: Play) => onEdge(play, edge, (at) => at.broker.tick()),
    })),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.nat(20), fc.option(concurrent)).map(([index, meanwhile]) => ({
      shown: `follower ${index} stalls at its next write${meanwhile ? `, while ${meanwhile.shown}` : ''}`,
      run: (play: Play) => stallNext(play, index, meanwhile),
    })),
  },
  {
    weight: 3,
    arbitrary: fc.nat(20).map((index) => ({
      shown: `follower ${index} drains`,
      run: (play: Play) => {
        const follower = play.pick(index);
        if (follower?.subscription.state === 'stalled') follower.edge.drained(follower);
      },
    })),
  },
  {
    weight: 1,
    arbitrary: fc.nat(20).map((index) => ({
      shown: `follower ${index} leaves`,
      run: (play: Play) => {
        const follower = play.pick(index);
        follower?.edge.broker.unsubscribe(follower.subscription);
      },
    })),
  },
);

function stallNext(play: Play, index: number, meanwhile: Step | null): void {
  const follower = play.pick(index);
  if (follower === undefined || follower.sink.blocked) return;
  follower.sink.takes = meanwhile !== null && index % 2 === 0;
  follower.sink.onWrite = () => {
    follower.sink.onWrite = () => {};
    meanwhile?.run(play);
  };
}

/** I1 and I2 for one follower: what it got is a run of its stream's log from its cursor, and it ended for a reason. */
function assertFollowed(play: Play, { sink, subscription, startCursor }: Follower): void {
  const { stream, cursor } = subscription;
  const log = play.logOf(stream);
  const expected = Array.from({ length: cursor - startCursor }, (_, i) => startCursor + 1 + i);
  assert.deepEqual(sink.seqs, expected, 'I1: consecutive from its cursor on');
  assert.deepEqual(sink.texts, log.slice(startCursor, cursor), 'I3: and what was published at those seqs');
  assert.ok(sink.endings.length <= 1, 'it ends once');
  const [ending] = sink.endings;
  const gone = play.stage.directory.find(stream.name)?.epoch !== stream.epoch;
  if (subscription.state !== 'ended') {
    assert.equal(ending, undefined);
    assert.ok(!gone, 'who reads a deleted stream is told');
    assert.equal(cursor, log.length, 'who can read has read to the end');
  } else if (ending === 'end' && sink.lastEvent?.type === 'stream_closed') {
    assert.equal(cursor, log.length, '4.7: the end comes after the last event');
  } else if (ending === 'cut' || sink.lastEvent?.type === 'resume_unavailable') {
    assert.equal(ending === 'end', subscription.tellUnavailable);
    assert.ok(cursor < log.length, '4.6: only who is behind can be overtaken');
  } else if (ending === 'end') {
    assert.equal(sink.lastEvent?.type, 'stream_deleted');
    assert.ok(gone);
  }
}

/** Counters, masks and queues agree with who is there. */
function assertTidy(play: Play): void {
  const { stage, followers } = play;
  for (const [index, edge] of stage.edges.entries()) {
    const here = followers.filter((follower) => follower.edge === edge);
    const alive = here.filter(({ subscription }) => subscription.state !== 'ended');
    assert.equal(edge.broker.subscriberCount, alive.length);
    assert.equal(edge.counters.get(Counter.subscribers), alive.length);
    assert.equal(edge.counters.get(Counter.seamViolations), 0);
    const told = here.filter(({ sink }) => sink.endings[0] === 'cut' || isRefusal(sink)).length;
    assert.equal(edge.counters.get(Counter.overtaken), told);
    for (let slot = 0; slot < STREAMS_MAX; slot++) {
      const bit = 1 << index;
      const interest = (stage.rings.i32[i32At(slot, layout.INTEREST_MASK_OFFSET)] as number) & bit;
      const reads = alive.some(({ subscription }) => subscription.stream.slot === slot);
      assert.equal(interest !== 0, reads, `edge ${index} has told that it reads slot ${slot}`);
      assert.equal((stage.rings.i32[i32At(slot, layout.DIRTY_MASK_OFFSET)] as number) & bit, 0);
    }
  }
}

function isRefusal(sink: FakeSink): boolean {
  return sink.lastEvent?.type === 'resume_unavailable';
}

test('in any order of steps of two edges, every reader gets a run without a hole or a plain end (I1, I2, I3, W1)', (context) => {
  const startCounting = boundReads(context, 1000);
  const plays = fc.array(steps, { minLength: 1, maxLength: 80, size: 'max' });
  fc.assert(
    fc.property(fc.constantFrom(0, 3), plays, (retentionEvents, drawn) => {
      startCounting();
      const play = new Play(retentionEvents);
      try {
        for (const { run } of drawn) run(play);
        play.finish();
        for (const follower of play.followers) assertFollowed(play, follower);
        assertTidy(play);
      } catch (error) {
        throw new Error(`after\n${drawn.map(({ shown }) => shown).join('\n')}`, { cause: error });
      }
    }),
    { numRuns: 1000 },
  );
});

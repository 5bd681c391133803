import { Prng } from '../support/prng.js';
import { Judge } from './judge.js';
import { SimulatedOperator, type StreamState } from './operator.js';
import { drawOptions, type SimulationOptions } from './options.js';
import { SimulatedPageReader } from './page-reader.js';
import { SimulatedPublisher } from './publisher.js';
import { Schedule, type Thread } from './schedule.js';
import { SharedMemory } from './shared-memory.js';
import { SimulatedReader } from './sse-reader.js';
import { installVirtualTime } from './virtual-time.js';
import { World } from './world.js';

/** What came of one seed. */
export interface Outcome {
  readonly seed: number;
  readonly options: SimulationOptions;
  /** What was wrong; empty: nothing. */
  readonly verdicts: readonly string[];
  /** The same for the same seed and the same code, always. */
  readonly fingerprint: string;
  readonly steps: number;
  readonly events: number;
  readonly resumes: number;
  readonly refusals: number;
}

/** Once the faults are over, publishers publish so often, in bursts, and after each everybody gets to the head. */
const ROUNDS = 4;
const BURST_PUBLISHES_MAX = 3;
/** How long that may take: two silences of a dead connection, and more. */
const ROUND_MS_MAX = 120_000;
const LOOK_MS = 500;
const STEPS_MAX = 400_000;

/**
 * Runs the broker against the world that a seed draws, first with faults, then without.
 * @param twice once more, to see that it is the same: if not, something in it is not drawn by the seed.
 */
export async function simulate(seed: number, { twice } = { twice: false }): Promise<Outcome> {
  const outcome = await play(seed);
  if (!twice) return outcome;
  const { fingerprint } = await play(seed);
  if (fingerprint === outcome.fingerprint) return outcome;
  return { ...outcome, verdicts: [...outcome.verdicts, 'it went another way when it was run again'] };
}

async function play(seed: number): Promise<Outcome> {
  const options = drawOptions(seed);
  const judge = new Judge();
  const schedule = new Schedule(new Prng(seed ^ 0x5bd1e995));
  const outside: Thread = {
    name: 'outside',
    alive: true,
    lateMsMax: 0,
    hasPromises: false,
    interrupts: true,
  };
  const memory = new SharedMemory({
    schedule,
    prng: new Prng(seed ^ 0x2545f491),
    accessesPerInterrupt: options.accessesPerInterrupt,
    wakeMsMax: options.messageMs,
  });
  const restore = [installVirtualTime(schedule, new Prng(seed ^ 0x1b873593)), memory.install()];
  const failed = (error: unknown): void =>
    judge.problem(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.on('unhandledRejection', failed);
  try {
    const prng = new Prng(seed ^ 0x38495ab5);
    const parts = { schedule, prng, options, judge, outside };
    await new Play(schedule.as(outside, () => new World(parts))).run();
  } catch (error) {
    failed(error);
  } finally {
    for (const undo of restore) undo();
    process.off('unhandledRejection', failed);
  }
  const { eventCount: events, resumeCount: resumes, refusalCount: refusals } = judge.checker;
  const counts = { steps: schedule.steps, events, resumes, refusals };
  return { seed, options, verdicts: judge.verdicts, fingerprint: judge.fingerprint(), ...counts };
}

/** The cast of a run, and its two phases. */
class Play {
  readonly #world: World;
  readonly #publishers: readonly SimulatedPublisher[];
  readonly #readers: readonly SimulatedReader[];
  readonly #pageReaders: readonly SimulatedPageReader[];
  readonly #operator: SimulatedOperator;
  readonly #states = new Map<string, StreamState | null>();

  constructor(world: World) {
    const { options } = world;
    this.#world = world;
    this.#publishers = cast(options.publishers, (i) => new SimulatedPublisher(world, `p${i}`));
    this.#readers = cast(options.readers, (i) => new SimulatedReader(world, `r${i}`));
    this.#pageReaders = cast(
      options.pageReaders,
      (i) => new SimulatedPageReader(world, `page${i}`, world.prng.pick(world.streams)),
    );
    this.#operator = new SimulatedOperator(world);
  }

  async run(): Promise<void> {
    const { schedule, options } = this.#world;
    const endMs = schedule.nowMs + options.safetyMs;
    await this.#until(() => schedule.nowMs >= endMs);
    this.#world.heal();
    for (let round = 0; round < ROUNDS; round++) if (!(await this.#round())) return;
    await this.#audit();
  }

  /** A burst, after which a stream may fall silent: whoever was not told of its end by then never is. */
  async #round(): Promise<boolean> {
    const { schedule, prng, judge } = this.#world;
    for (const publisher of this.#publishers) publisher.burst(prng.between(1, BURST_PUBLISHES_MAX));
    const deadlineMs = schedule.nowMs + ROUND_MS_MAX;
    let isDone = false;
    const again = (): void => {
      if (!isDone && schedule.nowMs < deadlineMs) this.#world.after(LOOK_MS, look);
    };
    const look = (): void => {
      // Asked earlier, the answer might be older than the newest event.
      if (!this.#publishers.every(({ isIdle }) => isIdle)) return again();
      this.#look(() => {
        isDone = this.#missing().length === 0;
        again();
      });
    };
    this.#world.after(0, look);
    await this.#until(() => isDone || schedule.nowMs > deadlineMs);
    if (isDone) return true;
    const idle = this.#publishers.every(({ isIdle }) => isIdle) ? '' : 'a publisher waits; ';
    judge.problem(`not at the head when the faults were long over: ${idle}${this.#missing().join(', ')}`);
    return false;
  }

  /** What readers have, and what is there: each has all of it. */
  async #audit(): Promise<void> {
    const { judge, schedule, streams } = this.#world;
    for (const { connection } of this.#readers) {
      if (connection !== null) judge.observe({ kind: 'caught-up', connection });
    }
    // One more reader, who has nothing, reads all that there is: each event that was acknowledged, and no other.
    let left = streams.length;
    for (const stream of streams) {
      const auditor = new SimulatedPageReader(this.#world, `auditor-${stream}`, stream);
      auditor.finish(() => left--);
    }
    const deadlineMs = schedule.nowMs + ROUND_MS_MAX;
    await this.#until(() => left === 0 || schedule.nowMs > deadlineMs);
    if (left > 0) judge.problem('the streams cannot be read to their heads');
  }

  /** Asks for all streams' positions, one after the other. */
  #look(done: () => void, at = 0): void {
    const stream = this.#world.streams[at];
    if (stream === undefined) return done();
    this.#operator.ask(stream, 'audience', (state) => {
      if (state !== 'unknown') this.#states.set(stream, state);
      this.#look(done, at + 1);
    });
  }

  #missing(): string[] {
    const followers = [...this.#readers, ...this.#pageReaders];
    return followers
      .filter((follower) => !this.#isThere(follower))
      .map(({ name, stream, position }) => {
        const state = this.#states.get(stream);
        return `${name} at ${JSON.stringify(position)} of ${stream}, which is ${JSON.stringify(state)}`;
      });
  }

  #isThere(follower: SimulatedReader | SimulatedPageReader): boolean {
    const { stream, position } = follower;
    const state = this.#states.get(stream);
    if (state === undefined) return false;
    if (state === null) return position === null;
    if (follower instanceof SimulatedReader && follower.isAtEnd) return state.closed;
    if (state.committed !== state.head) return false;
    return position?.epoch === state.epoch && position.seq === state.committed;
  }

  #until(isDone: () => boolean): Promise<void> {
    return this.#world.schedule.runUntil(isDone, STEPS_MAX);
  }
}

function cast<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

import { ActivityFeed } from '#gapless/broker/activity-feed.js';
import type { Directory } from '#gapless/broker/directory.js';
import { NO_JOURNAL } from '#gapless/broker/journal.js';
import { NamedSubscribers } from '#gapless/broker/named-subscribers.js';
import { PrefixCursors } from '#gapless/broker/prefix-cursors.js';
import { type Config, SETTINGS } from '#gapless/config/schema.js';
import type { Logger } from '#gapless/log.js';
import { holdFrom } from '#gapless/ring/lifecycle.js';
import { createLogStatus, LogStatus } from '#gapless/ring/log-status.js';
import { Rings } from '#gapless/ring/rings.js';
import { Wakes } from '#gapless/ring/wake-queue.js';
import { Coordinator, type CoordinatorParts } from '#gapless/server/coordinator.js';
import { createBuffers, type SharedBuffers } from '#gapless/server/create-buffers.js';
import { createDirectory } from '#gapless/server/create-directory.js';
import { assembleEdge } from '#gapless/server/edge/edge-assembly.js';
import { drainEdge } from '#gapless/server/edge/edge-drain.js';
import { EdgeLink } from '#gapless/server/edge/edge-link.js';
import { CommitLoop } from '#gapless/server/log/commit-loop.js';
import { LogDuty } from '#gapless/server/log/log-duty.js';
import { LogLine } from '#gapless/server/log/log-line.js';
import type { LogCommand } from '#gapless/server/log/log-messages.js';
import { renewStreams } from '#gapless/server/log/renew-streams.js';
import type { Question } from '#gapless/server/messages.js';
import { answerReplay } from '#gapless/server/replay/replay-question.js';
import type { LoggedStream } from '#gapless/storage/event-log.js';
import { addRoutes } from '#gapless/transport/app.js';
import { MemoryLog, MemoryReader } from '../support/memory-log.js';
import type { Prng } from '../support/prng.js';
import { SimulatedApp } from './http-library.js';
import { type CommitFaults, type Disk, sleep, withFaults } from './medium.js';
import type { SimulationOptions } from './options.js';
import type { Schedule, Thread } from './schedule.js';

/** As often as the real threads do it (server/start-broker.ts, log-worker.ts). */
const SWEEP_MS = 250;
const RETENTION_MS = 1000;
const SYNC_MS = 100;
const DRAIN_MS = 400;

const silent = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => undefined]),
) as unknown as Logger;

export interface MachineParts {
  readonly schedule: Schedule;
  readonly prng: Prng;
  readonly options: SimulationOptions;
  readonly disk: Disk;
  readonly faults: CommitFaults;
}

/** What the coordinator answers from. */
interface CoordinatorBasis {
  readonly directory: Directory;
  readonly named: NamedSubscribers;
  readonly rings: Rings;
  /** Null without a log. */
  readonly line: LogLine | null;
}

/**
 * One start of the broker: its real parts, put together as its threads do it, with the simulation's sockets, messages,
 * clocks and medium. It ends by being dropped, at any moment.
 */
export class Machine {
  readonly edges: SimulatedApp[] = [];
  readonly #parts: MachineParts;
  readonly #threads: Thread[] = [];
  /** How each edge is told to send its subscribers away, and the log thread to end. */
  readonly #drains: ((drained: () => void) => void)[] = [];
  #endLog: ((ended: () => void) => void) | null = null;

  constructor(parts: MachineParts) {
    this.#parts = parts;
    const main = this.#thread('main');
    parts.schedule.after(main, 0, () => void this.#boot(main));
  }

  /** The process is killed: nothing that was due in it happens. */
  kill(): void {
    for (const thread of this.#threads) thread.alive = false;
  }

  /** The broker is told to end, as server/start-broker.ts does it; whoever waits for that kills what is left. */
  stop(ended: () => void): void {
    let left = this.#drains.length;
    const drained = (): void => {
      if (--left > 0) return;
      if (this.#endLog === null) ended();
      else this.#endLog(ended);
    };
    for (const drain of this.#drains) drain(drained);
  }

  #thread(name: string): Thread {
    const thread = {
      name,
      alive: true,
      lateMsMax: this.#parts.options.threadLateMs,
      hasPromises: true,
      interrupts: true,
    };
    this.#threads.push(thread);
    return thread;
  }

  /** A line between two threads: what is sent arrives later, in its order, as a copy. */
  #line<M>(to: Thread, received: (message: M) => void): (message: M) => void {
    const { schedule, prng, options } = this.#parts;
    const underWay: M[] = [];
    return (message) => {
      underWay.push(structuredClone(message));
      schedule.after(to, prng.below(options.messageMs + 1), () => received(underWay.shift() as M));
    };
  }

  async #boot(main: Thread): Promise<void> {
    const { options, prng } = this.#parts;
    const config = configOf(options);
    const buffers = createBuffers(config, '');
    const rings = new Rings(buffers.rings);
    const logStatus = options.durable ? createLogStatus() : null;
    const log = logStatus === null ? null : this.#startLog(main, buffers, logStatus);
    const directory = createDirectory({
      config,
      rings,
      wakes: new Wakes(buffers.wakes, rings),
      journal: log?.line ?? NO_JOURNAL,
      removed: (epoch) => named.drop(epoch),
      now: Date.now,
      randomBytes: (count) => prng.bytes(count),
    });
    const named = new NamedSubscribers({
      streams: directory,
      journal: log?.line ?? NO_JOURNAL,
      subscribersMax: config.namedSubscribersMax,
      hold: log === null ? (ref, seq) => holdFrom(rings, ref, seq) : null,
    });
    const coordinator = this.#coordinator({ directory, named, rings, line: log?.line ?? null });
    if (log !== null) {
      const streams = await log.loaded;
      log.line.adopt(streams.map((logged) => ({ ref: directory.restore(logged), logged })));
      for (const { epoch, acked } of streams) named.restore(epoch, acked);
    }
    setInterval(() => {
      directory.sweep();
      named.sweep();
    }, SWEEP_MS);
    for (let edge = 0; edge < options.edges; edge++) {
      this.#startEdge(main, coordinator, {
        edge,
        config,
        logStatus,
        keys: null,
        mcp: null,
        clockOrigin: 0,
        ...buffers,
      });
    }
  }

  /** What is not simulated has nothing to do. */
  #coordinator({ directory, named, rings, line }: CoordinatorBasis): Coordinator {
    const prefixCursors = new PrefixCursors({
      streams: () => [],
      cursorsMax: 1,
      streamsMax: 1,
      keepMs: 0,
      tellMade: () => undefined,
      release: () => undefined,
      now: Date.now,
      randomBytes: (count) => this.#parts.prng.bytes(count),
    });
    const metrics = { render: async () => ({ contentType: '', text: '' }) };
    return new Coordinator({
      directory,
      named,
      prefixCursors,
      journal: line ?? NO_JOURNAL,
      metrics: metrics as unknown as CoordinatorParts['metrics'],
      activity: new ActivityFeed('simulated0'),
      askEdges: async () => [],
      unknownKey: async () => undefined,
      shared: null,
      replay: async (ask) => {
        if (line === null) return null;
        return answerReplay(ask, { rings, line, read: (_, task) => this.#replay(task), logger: silent });
      },
    });
  }

  #startEdge(
    main: Thread,
    coordinator: Coordinator,
    setup: Parameters<typeof assembleEdge>[0]['setup'],
  ): void {
    const { schedule, prng } = this.#parts;
    const thread = this.#thread(`edge-${setup.edge}`);
    schedule.as(thread, () => {
      const toEdge = this.#line(thread, (answer: Parameters<EdgeLink['answered']>[0]) =>
        link.answered(answer),
      );
      const toMain = this.#line(main, (question: Question) => {
        void coordinator.answer(question).then(toEdge);
      });
      const link = new EdgeLink({ postMessage: (message) => toMain(message as Question) });
      const services = assembleEdge({
        setup,
        link,
        mcp: null,
        log: silent,
        console: null,
        now: Date.now,
        random: Math.random,
        defer: (callback) => void setImmediate(callback),
      });
      const server = new SimulatedApp(schedule, prng, thread);
      addRoutes(server.app, services);
      setInterval(() => services.broker.tick(), services.broker.tickIntervalMs);
      this.edges.push(server);
      this.#drains.push((drained) =>
        schedule.after(thread, 0, () => void drainEdge(services, DRAIN_MS).then(drained)),
      );
    });
  }

  /** The log thread, as server/log/log-worker.ts has it. */
  #startLog(
    main: Thread,
    buffers: SharedBuffers,
    status: SharedArrayBuffer,
  ): { line: LogLine; loaded: Promise<LoggedStream[]> } {
    const { schedule, disk, faults, options } = this.#parts;
    const thread = this.#thread('log');
    let line: LogLine | null = null;
    let loaded: (streams: LoggedStream[]) => void = () => undefined;
    let ended: () => void = () => undefined;
    const toLog = schedule.as(thread, () => {
      const rings = new Rings(buffers.rings);
      const wakes = new Wakes(buffers.wakes, rings);
      const memory = new MemoryLog(disk.medium);
      const log = withFaults(memory, disk, faults);
      const toMain = this.#line(main, (message: Parameters<LogLine['done']>[0]) => line?.done(message));
      const duty = new LogDuty({
        wakes,
        loop: new CommitLoop({
          rings,
          wakes,
          log,
          status: new LogStatus(status),
          logBytesMax: options.logBytesMax,
          nowMs: Date.now,
          nowSeconds: () => performance.now() / 1000,
        }),
        send: (message) => toMain(message as Parameters<LogLine['done']>[0]),
        sleep,
        commitFailed: () => undefined,
      });
      void this.#load(memory)
        .then((streams) => {
          schedule.after(main, 0, () => loaded(streams));
          setInterval(() => duty.applyRetention(), RETENTION_MS);
          if (options.fsyncInterval) setInterval(() => void log.sync(), SYNC_MS);
          return duty.run();
        })
        .then(async () => {
          if (options.fsyncInterval) await log.sync();
          ended();
        });
      return this.#line(thread, (command: LogCommand) => duty.received(command));
    });
    line = new LogLine(new LogStatus(status), toLog);
    this.#endLog = (done) => {
      ended = done;
      toLog({ kind: 'stop' });
    };
    return { line, loaded: new Promise((resolve) => (loaded = resolve)) };
  }

  /** A start that fails is no start: faults come after it. */
  async #load(log: MemoryLog): Promise<LoggedStream[]> {
    const { disk, options, prng } = this.#parts;
    let streams = [...log.load()];
    if (disk.mayHaveLost) streams = await renewStreams(log, streams, (count) => prng.bytes(count));
    disk.mayHaveLost = false;
    if (options.fsyncInterval) disk.sync();
    return streams;
  }

  /** A thread of the replay pool reads: it takes its time, and its turn comes at any moment of that. */
  async #replay(
    task: { logId: number } & Parameters<MemoryReader['read']>[1],
  ): ReturnType<CoordinatorParts['replay']> {
    const { prng, options, disk, faults } = this.#parts;
    const waitMsMax = faults.on ? options.replayMs : 0;
    await sleep(prng.below(waitMsMax + 1));
    if (faults.on && prng.chance(options.replayFailChance)) throw new Error('drawn to fail');
    const run = new MemoryReader(disk.medium).read(task.logId, task);
    await sleep(prng.below(waitMsMax + 1));
    return run;
  }
}

/** The settings in force: as they are without a file or flags, and what the seed has drawn. */
function configOf(options: SimulationOptions): Config {
  const defaults = Object.fromEntries(SETTINGS.map((setting) => [setting.key, setting.default])) as Config;
  return {
    ...defaults,
    threads: options.edges,
    connectionsMax: 10_000,
    memory: options.memoryBytes,
    streamsMax: 4,
    streamBytesMax: options.streamBytesMax,
    retentionEvents: options.retentionEvents,
    retentionBytes: options.retentionBytes,
    retentionAgeMs: options.retentionAgeMs,
    ttlMs: options.ttlMs,
    dataDir: options.durable ? 'simulated' : null,
    ringBytes: options.ringBytes,
    logBytesMax: options.logBytesMax,
    replayCacheBytes: 64 * 1024,
    eventBytesMax: 4096,
    bodyBytesMax: 16 * 1024,
    batchEventsMax: 64,
    writeBytesMax: options.writeBytesMax,
    pageEventsMax: 50,
    pageBytesMax: 4096,
    heartbeatIntervalMs: options.heartbeatIntervalMs,
    retryMs: 200,
  };
}

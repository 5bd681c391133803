import { Directory } from '#gapless/broker/directory.js';
import { NO_JOURNAL } from '#gapless/broker/journal.js';
import { NamedSubscribers } from '#gapless/broker/named-subscribers.js';
import type { Placed, Publish } from '#gapless/broker/replicated-publish.js';
import type { BookClaim } from '#gapless/core/producer-book.js';
import { FrameBatch } from '#gapless/core/sse-frame.js';
import { createLogger } from '#gapless/log.js';
import { addSubscribers, readPositions } from '#gapless/ring/lifecycle.js';
import { createLogStatus, LogStatus } from '#gapless/ring/log-status.js';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { createWakes, Wakes } from '#gapless/ring/wake-queue.js';
import type { LogRoom } from '#gapless/server/replica/log-room.js';
import type { LostEntries } from '#gapless/server/replica/lost-entries.js';
import type { Replica } from '#gapless/server/replica/replica.js';
import { assembleReplica } from '#gapless/server/replica/replica-assembly.js';
import { ReplicaReader } from '#gapless/server/replica/replica-reader.js';
import type { ReplicaRetention } from '#gapless/server/replica/replica-retention.js';
import type { ReplicaSubscribers } from '#gapless/server/replica/replica-subscribers.js';
import type { Replication } from '#gapless/server/replica/replication.js';
import type { SubscriberWriter } from '#gapless/server/replica/subscriber-writer.js';
import { MemoryReplicatedLog, SharedMedium } from '../support/memory-replicated-log.js';

const SLOTS = 8;
export const DEFAULTS = {
  retention: { events: 0, bytes: 0, ageMs: 0 },
  overflow: 'evict' as const,
  ttlMs: 0,
};

export interface StageOptions {
  readonly medium: SharedMedium;
  readonly random?: () => number;
  readonly pause?: () => Promise<void>;
  readonly memoryBytes?: number;
}

/** One of several brokers on a log, without sockets and threads: what its coordinator has. */
export class ReplicaStage {
  nowMs = 1_700_000_000_000;
  readonly log: MemoryReplicatedLog;
  readonly rings: Rings;
  readonly directory: Directory;
  readonly replica: Replica;
  readonly replication: Replication;
  readonly retention: ReplicaRetention;
  readonly reader: ReplicaReader;
  readonly named: NamedSubscribers;
  readonly subscribers: SubscriberWriter;
  readonly takenUp: ReplicaSubscribers;
  readonly room: LogRoom;
  readonly lost: LostEntries;
  readonly status = new LogStatus(createLogStatus());
  readonly #batch = new FrameBatch(100_000);

  constructor({ medium, random = Math.random, pause, memoryBytes = 2 ** 20 }: StageOptions) {
    const log = new MemoryReplicatedLog(medium, pause);
    const rings = new Rings(createRings({ streamsMax: SLOTS, memoryBytes, durable: true }));
    const wakes = new Wakes(createWakes(1, SLOTS, 1), rings);
    const nowMs = (): number => this.nowMs;
    const randomBytes = (count: number): Uint8Array =>
      Uint8Array.from({ length: count }, () => 256 * random());
    const logger = createLogger({ level: 'silent', thread: 'test' });
    const directory = new Directory({
      rings,
      wakes,
      defaults: DEFAULTS,
      streamBytesMax: 2 ** 16,
      publishBytesMax: 2 ** 12,
      autoCreate: true,
      journal: NO_JOURNAL,
      removed: (epoch) => named.drop(epoch),
      expire: () => undefined,
      ringBytes: 2 ** 14,
      now: nowMs,
      randomBytes,
    });
    const named = new NamedSubscribers({
      streams: directory,
      journal: NO_JOURNAL,
      subscribersMax: 10,
      hold: null,
    });
    const { status } = this;
    const parts = assembleReplica({
      ...{ log, directory, named, rings, wakes, status, logger, nowMs, randomBytes },
      producers: { countMax: [100, 100], ttlMs: [60_000, 60_000] },
      autoCreate: true,
      retryMs: 1,
    });
    this.log = log;
    this.rings = rings;
    this.directory = directory;
    this.named = named;
    this.replica = parts.replica;
    this.replication = parts.replication;
    this.retention = parts.retention;
    this.room = parts.room;
    this.lost = parts.lost;
    this.takenUp = parts.subscribers;
    this.subscribers = parts.subscriberWriter;
    this.reader = new ReplicaReader({ log, readsMax: 4 });
  }

  static async start(options: StageOptions): Promise<ReplicaStage> {
    const stage = new ReplicaStage(options);
    await stage.replication.start();
    return stage;
  }

  publish(
    name: string,
    lines: readonly string[],
    { claim = null, ifHead = null, creates = true }: Partial<Publish> & { claim?: BookClaim | null } = {},
  ): Promise<Placed> {
    this.#batch.reset();
    for (const line of lines) this.#batch.pushText(Buffer.from(line), 0, Buffer.byteLength(line), null);
    const { bytes, size, ends, count } = this.#batch;
    const parts = { bytes: bytes.slice(0, size), ends: ends.slice(0, count) };
    return this.replication.publish(name, { parts, claim, ifHead, creates });
  }

  hasReaders(name: string, has: boolean): void {
    const ref = this.directory.find(name);
    if (ref !== null) addSubscribers(this.rings, ref, has ? 1 : -1);
  }

  positions(name: string) {
    const ref = this.directory.find(name);
    return ref === null ? null : readPositions(this.rings, ref);
  }

  /** Data of the events after a seq as the log has them, of all or at least so many. */
  async data(name: string, afterSeq = 0, countMin = Number.POSITIVE_INFINITY): Promise<string[]> {
    const stream = this.replica.find(name);
    const data: string[] = [];
    if (stream === undefined) return data;
    for (let seq = afterSeq; seq < stream.entry.head && data.length < countMin; ) {
      const run = await this.reader.read(stream, seq, 1000);
      if (run === null) throw new Error(`no event after ${seq}`);
      const text = Buffer.from(run.frames).toString();
      const frames = [...text.matchAll(/id: [a-z0-9]+\.(\d+)\ndata: (.*)\n\n/g)];
      if (frames.length !== run.lastSeq - run.firstSeq + 1) throw new Error(`a torn run: ${text}`);
      for (const [, id, line] of frames) {
        if (Number(id) !== ++seq) throw new Error(`event ${id} in the place of ${seq}`);
        data.push(line as string);
      }
    }
    return data;
  }
}

/** A log, and one broker on it. */
export async function oneBroker(): Promise<{ medium: SharedMedium; broker: ReplicaStage }> {
  const medium = new SharedMedium();
  return { medium, broker: await ReplicaStage.start({ medium }) };
}

/** A log, and two brokers that share it. */
export async function twoBrokers(): Promise<{ medium: SharedMedium; a: ReplicaStage; b: ReplicaStage }> {
  const medium = new SharedMedium();
  return { medium, a: await ReplicaStage.start({ medium }), b: await ReplicaStage.start({ medium }) };
}

/** Waits for what goes on behind an answer. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
}

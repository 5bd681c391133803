/**
 * Puts together what keeps a broker in step with the log that it shares with others. The log, clocks and chance are
 * handed in.
 */

import type { Directory } from '../../broker/directory.js';
import type { NamedSubscribers } from '../../broker/named-subscribers.js';
import { EPOCH_LENGTH, makeEpoch } from '../../core/epoch.js';
import type { ProducerBounds } from '../../core/producer-book.js';
import type { Logger } from '../../log.js';
import type { LogStatus } from '../../ring/log-status.js';
import type { Rings } from '../../ring/rings.js';
import type { Wakes } from '../../ring/wake-queue.js';
import type { ReplicatedLog } from '../../storage/replicated-log.js';
import { LogRoom } from './log-room.js';
import { LostEntries } from './lost-entries.js';
import { Replica } from './replica.js';
import { ReplicaHeld } from './replica-held.js';
import { ReplicaRetention } from './replica-retention.js';
import { ReplicaSubscribers } from './replica-subscribers.js';
import { Replication } from './replication.js';
import { RingFiller } from './ring-filler.js';
import { StreamUse } from './stream-use.js';
import { SubscriberWriter } from './subscriber-writer.js';
import { WriteNames } from './write-names.js';

export interface ReplicaAssemblyOptions {
  readonly log: ReplicatedLog;
  readonly directory: Directory;
  readonly named: NamedSubscribers;
  readonly rings: Rings;
  readonly wakes: Wakes;
  readonly status: LogStatus;
  readonly logger: Logger;
  readonly producers: ProducerBounds;
  /** Whether a publish or a subscription may create its stream. */
  readonly autoCreate: boolean;
  /** How long a log that failed is left alone before it is asked again. */
  readonly retryMs: number;
  /** Unix time, milliseconds. */
  readonly nowMs: () => number;
  /** From 0 up to 1. */
  readonly randomBytes: (count: number) => Uint8Array;
}

export interface ReplicaAssembly {
  readonly replica: Replica;
  readonly replication: Replication;
  readonly retention: ReplicaRetention;
  readonly lost: LostEntries;
  readonly room: LogRoom;
  /** What was taken up of the named subscribers. */
  readonly subscribers: ReplicaSubscribers;
  readonly subscriberWriter: SubscriberWriter;
}

/** Nothing is read from the log yet: see `Replication.start`. */
export function assembleReplica(options: ReplicaAssemblyOptions): ReplicaAssembly {
  const { log, directory, named, rings, wakes, status, logger, nowMs, randomBytes } = options;
  const { producers, autoCreate, retryMs } = options;
  const names = new WriteNames(makeEpoch(randomBytes(EPOCH_LENGTH)));
  const replica = new Replica({
    log,
    directory,
    filler: new RingFiller({ rings, wakes, now: nowMs }),
    producers,
    logger,
    grown: (stream) => retention.grown(stream),
    contradicted: (stream) => replication.contradicted(stream),
    opened: (stream) => subscribers.opened(stream),
    removed: (stream) => {
      subscribers.removed(stream);
      retention.removed(stream);
    },
  });
  const room = new LogRoom({ log, status, logger });
  const subscribers = new ReplicaSubscribers({ log, replica, named, names, nowMs });
  const held = new ReplicaHeld({ log, named });
  const shared = { log, replica, subscribers, held, names, rings, status, logger, nowMs };
  const replication = new Replication({
    ...shared,
    directory,
    room,
    defaults: directory.defaults,
    autoCreate,
    retryMs,
    randomBytes,
  });
  const use = new StreamUse({ log, replication, subscribers, names });
  const retention: ReplicaRetention = new ReplicaRetention({ ...shared, replication, use });
  const lost = new LostEntries({ log, replication, status, logger, nowMs });
  const subscriberWriter = new SubscriberWriter({
    ...{ log, replica, replication, subscribers, named, names, nowMs },
  });
  return { replica, replication, retention, lost, room, subscribers, subscriberWriter };
}

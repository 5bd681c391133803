/**
 * The JetStream stream that has a log: made where it is not there, and otherwise taken as it is, if it keeps what it is
 * given.
 */

import { randomUUID } from 'node:crypto';
import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { LogCorruption } from '../event-log.js';
import { SUBJECT_PREFIX } from './jetstream-subjects.js';

export interface JetStreamSettings {
  /** Name of the JetStream stream. */
  readonly stream: string;
  /** On how many servers each message is kept, where the stream is made. */
  readonly replicas: number;
  /** What it may occupy on each of them; 0: as it is, or without a limit where it is made. */
  readonly bytesMax: number;
  /** Told that `bytesMax` is not set, because the log has more already. */
  readonly tooSmall: (bytes: number) => void;
}

interface Opening extends JetStreamSettings {
  readonly subjects: string;
  /** The limit is that of the broker that was started last, and not of one that comes back to its log. */
  readonly isStart: boolean;
}

/** How full a log may be by a limit that is set: others append meanwhile. */
const FILLED_MAX = 0.95;

/** @throws {LogCorruption} it is not a log, or does not keep what it is given. @throws an error of JetStream */
export async function openStream(manager: JetStreamManager, opening: Opening): Promise<StreamInfo> {
  const info = await findOrMake(manager, opening);
  const { name, description = '' } = info.config;
  if (!description.startsWith(SUBJECT_PREFIX)) {
    throw new LogCorruption(`the JetStream stream ${name} was not made by a broker`);
  }
  const setting = lossySetting(info.config);
  if (setting !== null) {
    throw new LogCorruption(`the JetStream stream ${name} lets events go that are to be kept: ${setting}`);
  }
  return info;
}

async function findOrMake(manager: JetStreamManager, opening: Opening): Promise<StreamInfo> {
  const { stream, replicas, bytesMax, subjects } = opening;
  try {
    return await limit(manager, await manager.streams.info(stream), opening);
  } catch (error) {
    const isMissing = error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
    if (!isMissing) throw error;
  }
  try {
    return await manager.streams.add({
      name: stream,
      // Says which log it is: one that is made in its place has another.
      description: `${SUBJECT_PREFIX} ${randomUUID()}`,
      subjects: [subjects],
      num_replicas: replicas,
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_consumers: -1,
      max_msgs: -1,
      max_bytes: bytesMax === 0 ? -1 : bytesMax,
      max_age: 0,
      allow_direct: false,
    });
  } catch (error) {
    // Another broker was faster.
    return await manager.streams.info(stream).catch(() => Promise.reject(error));
  }
}

/** JetStream drops the oldest messages, of whichever stream, where it has more than a limit that is set. */
async function limit(
  manager: JetStreamManager,
  found: StreamInfo,
  { stream, bytesMax, isStart, tooSmall }: Opening,
): Promise<StreamInfo> {
  const { config, state } = found;
  if (!isStart || bytesMax === 0 || bytesMax === config.max_bytes) return found;
  if (state.bytes <= bytesMax * FILLED_MAX)
    return await manager.streams.update(stream, { max_bytes: bytesMax });
  tooSmall(state.bytes);
  return found;
}

/** What somebody has set that loses events behind the brokers' backs; other limits refuse them. */
export function lossySetting(config: StreamConfig): string | null {
  const { retention, discard, max_age, max_msgs_per_subject, no_ack } = config;
  if (retention !== RetentionPolicy.Limits) return `retention ${retention}`;
  if (discard !== DiscardPolicy.New) return `discard ${discard}`;
  if (max_age > 0) return 'max_age';
  if (max_msgs_per_subject > 0) return 'max_msgs_per_subject';
  return no_ack ? 'no_ack' : null;
}

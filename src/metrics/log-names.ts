/** The metrics of a log that keeps events beyond the rings, one sentence each. */

import { LogCounter } from '../ring/log-status.js';

export const COMMIT_SECONDS = {
  name: 'gapless_log_commit_seconds',
  help: 'Time that commits to the durable log took, each of a group of appends.',
};

export const LOG_FAULT = {
  name: 'gapless_log_fault',
  help: 'Whether the durable log takes appends: 0 it does, 1 the disk is full, 2 it fails otherwise.',
};

export const LOG_DISK_FREE = {
  name: 'gapless_log_disk_free_bytes',
  help: 'Bytes that the disk of the durable log has left for it, beside what its file has taken.',
};

/** Counted by the log thread. Events over commits is the size of a group. */
export const LOG_METRICS = [
  { name: 'gapless_log_commits_total', help: 'Commits to the durable log.', counter: LogCounter.commits },
  {
    name: 'gapless_log_committed_events_total',
    help: 'Events committed.',
    counter: LogCounter.committedEvents,
  },
  {
    name: 'gapless_log_committed_bytes_total',
    help: 'Bytes of frames committed.',
    counter: LogCounter.committedBytes,
  },
  {
    name: 'gapless_log_failed_commits_total',
    help: 'Commits that failed.',
    counter: LogCounter.failedCommits,
  },
  {
    name: 'gapless_log_size_bytes',
    help: 'Bytes that the durable log occupies.',
    counter: LogCounter.sizeBytes,
  },
  {
    name: 'gapless_log_capacity_bytes',
    help: 'Bytes that a log which brokers share may occupy; +Inf where nothing limits it.',
    counter: LogCounter.capacityBytes,
  },
  {
    name: 'gapless_log_kept_bytes',
    help: 'Bytes of events in the durable log that can be read.',
    counter: LogCounter.keptBytes,
  },
  {
    name: 'gapless_log_limit_trimmed_bytes_total',
    help: 'Bytes of events that went because all streams together passed logBytesMax.',
    counter: LogCounter.limitTrimmedBytes,
  },
  {
    name: 'gapless_log_lost_events_total',
    help: 'Events that a log which brokers share has lost, found by this broker when they were asked for.',
    counter: LogCounter.lostEvents,
  },
  {
    name: 'gapless_log_renewed_streams_total',
    help: 'Streams that began anew because a log which brokers share has lost their newest events, seen by this broker.',
    counter: LogCounter.renewedStreams,
  },
] as const;

/** How the replay pool is doing. */
export const REPLAY_METRICS = {
  reads: {
    name: 'gapless_replay_reads_total',
    help: 'Reads from the durable log for readers below the ring.',
  },
  shared: {
    name: 'gapless_replay_shared_reads_total',
    help: 'Reads that an identical one, under way or waiting, answered as well.',
  },
  bytes: { name: 'gapless_replay_read_bytes_total', help: 'Bytes of frames read from the durable log.' },
  failed: { name: 'gapless_replay_failed_reads_total', help: 'Reads from the durable log that failed.' },
  depth: { name: 'gapless_replay_queue_reads', help: 'Reads from the durable log in flight and waiting.' },
} as const;

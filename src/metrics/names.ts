/**
 * The metrics of the broker but for those of logs and of the MCP front, one sentence each. Labels are of low cardinality;
 * the name of a stream is one only for the few that are picked.
 */

import { Counter } from '../ring/counters.js';

interface WordMetric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  /** The shared words that it shows, summed over the edges; a label value for each where there are several. */
  readonly words: number | { readonly label: string; readonly values: Readonly<Record<string, number>> };
}

/** Metrics that are words in shared memory, summed over the edges. */
export const WORD_METRICS: readonly WordMetric[] = [
  word('counter', 'publishes_total', 'Publish requests that appended.', Counter.publishes),
  word('counter', 'published_events_total', 'Events appended.', Counter.publishedEvents),
  word('counter', 'published_bytes_total', 'Bytes of request bodies appended.', Counter.publishedBytes),
  {
    name: 'gapless_publishes_refused_total',
    help: 'Publishes refused for want of room: the stream waits for commits, or for named subscribers to acknowledge, the memory is full, the log cannot commit, no more producers can be remembered, or for a rate.',
    type: 'counter',
    words: {
      label: 'reason',
      values: {
        uncommitted: Counter.refusedUncommitted,
        held: Counter.refusedHeld,
        memory: Counter.refusedMemory,
        log: Counter.refusedLog,
        producers: Counter.refusedProducers,
        rate: Counter.refusedRate,
      },
    },
  },
  word(
    'counter',
    'publish_duplicates_total',
    'Publishes that had been appended before, and were answered as at first.',
    Counter.duplicates,
  ),
  {
    name: 'gapless_producer_refusals_total',
    help: 'Publishes refused because of what their producer published before, by reason.',
    type: 'counter',
    words: {
      label: 'reason',
      values: {
        gap: Counter.producerGaps,
        fenced: Counter.producersFenced,
        forgotten: Counter.publishesForgotten,
      },
    },
  },
  word('counter', 'deliveries_total', 'Events written to subscribers, once for each.', Counter.deliveries),
  word('counter', 'delivered_bytes_total', 'Bytes of frames written to subscribers.', Counter.deliveredBytes),
  word(
    'counter',
    'replayed_bytes_total',
    'Bytes of frames written that came from the durable log.',
    Counter.replayedBytes,
  ),
  word('counter', 'pages_total', 'Pages read.', Counter.pages),
  word(
    'counter',
    'heartbeats_total',
    'Comments and bare ids written to idle subscribers.',
    Counter.heartbeats,
  ),
  {
    name: 'gapless_resume_attempts_total',
    help: 'Subscriptions and paged reads begun, by outcome; joined had no cursor.',
    type: 'counter',
    words: {
      label: 'outcome',
      values: {
        joined: Counter.joinedLive,
        live: Counter.resumedLive,
        ring: Counter.resumedRing,
        log: Counter.resumedLog,
        refused: Counter.resumeRefused,
      },
    },
  },
  {
    name: 'gapless_resume_unavailable_total',
    help: 'Refusals to give events after a cursor, by reason, of readers overtaken while connected too.',
    type: 'counter',
    words: {
      label: 'reason',
      values: {
        ahead_of_head: Counter.unavailableAheadOfHead,
        cursor_unknown: Counter.unavailableCursorUnknown,
        epoch_changed: Counter.unavailableEpochChanged,
        evicted: Counter.unavailableEvicted,
        malformed: Counter.unavailableMalformed,
      },
    },
  },
  word(
    'counter',
    'prefixes_over_limit_total',
    'Subscriptions by prefix refused or cut because there are more streams than prefixStreamsMax.',
    Counter.prefixesOverLimit,
  ),
  word(
    'counter',
    'subscribers_overtaken_total',
    'Subscribers ended because eviction passed them.',
    Counter.overtaken,
  ),
  word(
    'counter',
    'evicted_undelivered_events_total',
    'Events evicted before a connected subscriber had them, once for each: retention is too small.',
    Counter.evictedUndelivered,
  ),
  word('counter', 'subscriber_stalls_total', 'Writes that a socket did not take whole.', Counter.stalls),
  word(
    'counter',
    'seam_violations_total',
    'Runs of events with a wrong beginning. Must stay 0.',
    Counter.seamViolations,
  ),
  word(
    'counter',
    'discarded_copies_total',
    'Copies out of a ring discarded and made again.',
    Counter.discardedCopies,
  ),
  word(
    'counter',
    'reclaimed_rings_total',
    'Rings that gave their memory to another stream, for the durable log has their events.',
    Counter.reclaimedRings,
  ),
  word('counter', 'http_requests_total', 'Requests received.', Counter.requests),
  word('counter', 'http_request_errors_total', 'Requests answered with a problem.', Counter.requestErrors),
  {
    name: 'gapless_http_requests_denied_total',
    help: 'Requests denied, for want of an accepted token or key, or of a right.',
    type: 'counter',
    words: {
      label: 'reason',
      values: { unauthorized: Counter.requestsUnauthorized, forbidden: Counter.requestsForbidden },
    },
  },
  {
    name: 'gapless_subscriptions_refused_total',
    help: 'Subscriptions and pages refused for a limit of the server, the stream or the address, or because the loop is late.',
    type: 'counter',
    words: {
      label: 'reason',
      values: {
        server: Counter.subscribersRefused,
        stream: Counter.streamSubscribersRefused,
        address: Counter.addressSubscribersRefused,
        replay: Counter.replaysLimited,
        shed_replay: Counter.shedReplays,
        shed_subscription: Counter.shedSubscriptions,
      },
    },
  },
  word(
    'counter',
    'subscribers_expired_total',
    'Subscribers ended because their token or key did.',
    Counter.subscribersExpired,
  ),
  word('counter', 'connections_opened_total', 'Connections accepted.', Counter.connectionsOpened),
  word(
    'counter',
    'connections_refused_total',
    'Requests refused for too many connections in use.',
    Counter.connectionsRefused,
  ),
  word(
    'counter',
    'connections_dropped_total',
    'Connections closed before their first request, for the process is short of descriptors.',
    Counter.connectionsDropped,
  ),
  word('gauge', 'connections', 'Open connections.', Counter.connections),
  word(
    'gauge',
    'connections_in_use',
    'Connections with a request under way, event streams and WebSockets among them.',
    Counter.connectionsInUse,
  ),
  word('gauge', 'websockets', 'Open connections that are WebSockets.', Counter.webSockets),
  word('counter', 'websocket_messages_total', 'Messages of WebSocket peers.', Counter.messages),
  word(
    'counter',
    'websocket_messages_refused_total',
    'Messages of WebSocket peers refused because too many wait for their answers.',
    Counter.messagesRefused,
  ),
  word('gauge', 'subscribers', 'Open subscriptions.', Counter.subscribers),
  word(
    'gauge',
    'subscribers_stalled',
    'Subscribers whose socket takes nothing now.',
    Counter.subscribersStalled,
  ),
];

export const LOOP_DELAY = {
  name: 'gapless_event_loop_delay_seconds',
  help: 'Delay of the event loop over the last second, by edge; quantile 1 is the largest.',
  words: {
    '0.5': Counter.loopDelayP50Seconds,
    '0.99': Counter.loopDelayP99Seconds,
    '1': Counter.loopDelayMaxSeconds,
  },
};

export const CATCH_UP = {
  name: 'gapless_catch_up_seconds',
  help: 'Time that subscribers took from the durable log back to what is in memory.',
};

export const SUBSCRIBER_LAG = {
  name: 'gapless_subscriber_lag_events',
  help: 'How far subscribers are behind what is committed, sampled each second, by what was written to their socket and by what left the process.',
};

/** Metrics that are computed when they are asked for. */
export const COMPUTED = {
  arenaCapacity: { name: 'gapless_arena_capacity_bytes', help: 'Memory for events, allocated at start.' },
  arenaUsed: { name: 'gapless_arena_used_bytes', help: 'Memory that rings occupy.' },
  arenaRefusals: { name: 'gapless_arena_refusals_total', help: 'Times a ring found no memory to grow.' },
  producerMemory: {
    name: 'gapless_producer_memory_bytes',
    help: 'Memory that is taken by what is remembered of producers and keys.',
  },
  streams: { name: 'gapless_streams', help: 'Streams.' },
  retainedEvents: { name: 'gapless_retained_events', help: 'Events that can be read, over all streams.' },
  retainedBytes: {
    name: 'gapless_retained_bytes',
    help: 'Bytes of frames that can be read, over all streams.',
  },
  committedEvents: { name: 'gapless_committed_events', help: 'Sum of the committed seqs of all streams.' },
  headEvents: {
    name: 'gapless_head_events',
    help: 'Sum of the head seqs of all streams; what is above the committed ones waits for a commit.',
  },
  namedSubscribers: { name: 'gapless_named_subscribers', help: 'Named subscribers that are remembered.' },
  acknowledgements: {
    name: 'gapless_acknowledgements_total',
    help: 'Acknowledgements of named subscribers, by request, message or pong.',
  },
  activityMissed: {
    name: 'gapless_activity_missed_total',
    help: 'Resumes and refusals that came too fast for the list of what happened lately.',
  },
  evictedEvents: { name: 'gapless_evicted_events_total', help: 'Events evicted, over all streams.' },
} as const;

/** Metrics of the streams that are picked: by the allow-list, and those with the largest lag. */
export const STREAM_METRICS = {
  floor: { name: 'gapless_stream_floor', help: 'Lowest seq that can be read.' },
  committed: { name: 'gapless_stream_committed', help: 'Newest seq that may be seen.' },
  head: { name: 'gapless_stream_head', help: 'Newest seq.' },
  subscribers: { name: 'gapless_stream_subscribers', help: 'Open subscriptions.' },
  lag: {
    name: 'gapless_stream_lag_events',
    help: 'Events that the subscriber furthest behind has not been delivered.',
  },
  ackedLag: {
    name: 'gapless_stream_acked_lag_events',
    help: 'Events that the named subscriber furthest behind has not acknowledged.',
  },
} as const;

function word(type: WordMetric['type'], name: string, help: string, words: number): WordMetric {
  return { name: `gapless_${name}`, help, type, words };
}

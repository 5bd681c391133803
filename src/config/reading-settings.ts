import { define } from './definition.js';
import { size, time, wholeNumber } from './kinds.js';
import { DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

/** How events reach those who read them (contract 4, 6). */
export const READING_DEFINITIONS = {
  writeBytesMax: define({
    group: 'Reading',
    kind: size({ min: KIB, max: 16 * MIB }),
    default: 128 * KIB,
    doc: 'Bytes written to one subscriber at a time.',
  }),
  namedSubscribersMax: define({
    group: 'Reading',
    kind: wholeNumber({ min: 0, max: 10_000_000, unit: 'subscribers' }),
    default: 100_000,
    doc: 'Named subscribers that are remembered at a time, over all streams. One stream has at most 1000.',
  }),
  prefixStreamsMax: define({
    group: 'Reading',
    kind: wholeNumber({ min: 1, max: 100_000, unit: 'streams' }),
    default: 1000,
    doc: 'Streams in one subscription by prefix.',
  }),
  prefixCursorsMax: define({
    group: 'Reading',
    kind: wholeNumber({ min: 1, max: 1_000_000, unit: 'cursors' }),
    default: 10_000,
    doc: 'Cursors of subscriptions by prefix, of those that are open and of those that may come back. One more takes the place of the one that has been away longest.',
  }),
  prefixCursorMs: define({
    group: 'Reading',
    kind: time({ min: 0, max: DAY_MS }),
    default: 5 * MINUTE_MS,
    doc: 'How long the cursor of a subscription by prefix is kept after its connection has ended.',
  }),
  pageEventsMax: define({
    group: 'Reading',
    kind: wholeNumber({ min: 1, max: 100_000, unit: 'events' }),
    default: 1000,
    doc: 'Events on one page of a paged read.',
  }),
  pageBytesMax: define({
    group: 'Reading',
    kind: size({ min: KIB, max: 64 * MIB }),
    default: MIB,
    doc: 'Bytes on one page of a paged read.',
  }),
  longPollMsMax: define({
    group: 'Reading',
    kind: time({ min: 0, max: 10 * MINUTE_MS }),
    default: MINUTE_MS,
    doc: 'Time for which a paged read may wait for an event. 0 answers at once.',
  }),
  heartbeatIntervalMs: define({
    group: 'Reading',
    // The contract promises a line at least this often (4.3): proxies and clients are set up for it.
    kind: time({ min: 10, max: 15 * SECOND_MS }),
    default: 15 * SECOND_MS,
    doc: 'Time after which an idle subscriber is sent a comment.',
  }),
  retryMs: define({
    group: 'Reading',
    kind: time({ min: 1, max: HOUR_MS }),
    default: 2 * SECOND_MS,
    doc: 'Time after which a subscriber should come back, before jitter.',
  }),
};

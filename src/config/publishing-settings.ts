import { define } from './definition.js';
import { size, time, wholeNumber } from './kinds.js';
import { GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS, YEAR_MS } from './units.js';

/** What may be published, and how long it is remembered who did (contract 3). */
export const PUBLISHING_DEFINITIONS = {
  eventBytesMax: define({
    group: 'Publishing',
    kind: size({ min: 1, max: 64 * MIB }),
    default: MIB,
    doc: 'Data of one event. The default is lowered to `bodyBytesMax` where that is less.',
  }),
  bodyBytesMax: define({
    group: 'Publishing',
    kind: size({ min: 1, max: 512 * MIB }),
    default: 8 * MIB,
    doc: 'Body of one request.',
  }),
  batchEventsMax: define({
    group: 'Publishing',
    kind: wholeNumber({ min: 1, max: 1_000_000, unit: 'events' }),
    default: 65_536,
    doc: 'Events in one request.',
  }),
  producersMax: define({
    group: 'Publishing',
    kind: wholeNumber({ min: 0, max: 1_000_000, unit: 'producers' }),
    default: 10_000,
    doc: 'Producers that a stream remembers at a time. Further ones are refused until older ones are forgotten.',
  }),
  producerTtlMs: define({
    group: 'Publishing',
    kind: time({ min: SECOND_MS, max: YEAR_MS }),
    default: 24 * HOUR_MS,
    doc: 'Time for which a producer is remembered after its last publish.',
  }),
  idempotencyKeysMax: define({
    group: 'Publishing',
    kind: wholeNumber({ min: 0, max: 10_000_000, unit: 'keys' }),
    default: 100_000,
    doc: 'Idempotency keys that a stream remembers at a time. Further ones are refused until older ones are forgotten.',
  }),
  idempotencyTtlMs: define({
    group: 'Publishing',
    kind: time({ min: SECOND_MS, max: YEAR_MS }),
    default: 10 * MINUTE_MS,
    doc: 'Time for which an idempotency key is remembered. A retry that comes later is a new publish.',
  }),
  producerBytesMax: define({
    group: 'Publishing',
    kind: size({ min: 4 * KIB, max: 64 * GIB }),
    default: 32 * MIB,
    doc: 'Memory for producers and keys of all streams, out of `memory`. The default is lowered where that is less.',
  }),
};

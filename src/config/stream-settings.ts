import { define } from './definition.js';
import { choice, onOff, size, time, wholeNumber } from './kinds.js';
import { GIB, MIB, YEAR_MS } from './units.js';

/** What streams are made with, where their maker does not say otherwise (contract 2.1). */
export const STREAM_DEFINITIONS = {
  autoCreate: define({
    group: 'Streams',
    kind: onOff(),
    default: true,
    doc: 'Create a stream when somebody first publishes or subscribes to it.',
  }),
  retentionEvents: define({
    group: 'Streams',
    kind: wholeNumber({ min: 0, max: 1_000_000_000, unit: 'events' }),
    default: 0,
    doc: 'Newest events that a stream keeps at least; at twice as many it evicts. 0 sets no such limit.',
  }),
  retentionBytes: define({
    group: 'Streams',
    kind: size({ min: 0, max: GIB }),
    default: 4 * MIB,
    doc:
      'Newest bytes that a stream keeps at least; at twice as many it evicts. 0 sets no such limit. ' +
      'The default is lowered where a stream has not the memory for it, and is 1GiB with `dataDir` or `log`.',
  }),
  retentionAgeMs: define({
    group: 'Streams',
    kind: time({ min: 0, max: YEAR_MS }),
    default: 0,
    doc: 'Time for which a stream keeps an event at least; at twice that age it evicts. 0 sets no such limit.',
  }),
  overflow: define({
    group: 'Streams',
    kind: choice(['evict', 'reject']),
    default: 'evict',
    doc: 'What gives way when a stream is full: its oldest events, or the publisher, as long as named subscribers need those.',
  }),
  ttlMs: define({
    group: 'Streams',
    kind: time({ min: 0, max: YEAR_MS }),
    default: 0,
    doc: 'Time after which a stream that nobody uses is deleted. 0 keeps it.',
  }),
};

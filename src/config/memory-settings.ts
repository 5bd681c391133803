import { define } from './definition.js';
import { size, wholeNumber } from './kinds.js';
import { GIB, KIB, MIB } from './units.js';

/** What it takes of the machine. */
export const MEMORY_DEFINITIONS = {
  threads: define({
    group: 'Memory and threads',
    kind: wholeNumber({ min: 1, max: 31, unit: 'threads' }),
    default: 1,
    doc: 'Threads that serve connections, all on the one port.',
  }),
  memory: define({
    group: 'Memory and threads',
    kind: size({ min: MIB, max: 64 * GIB }),
    default: 256 * MIB,
    doc: 'Memory for the events of all streams, allocated at start.',
  }),
  streamsMax: define({
    group: 'Memory and threads',
    kind: wholeNumber({ min: 1, max: 1_000_000, unit: 'streams' }),
    default: 100_000,
    doc: 'Streams that can exist at a time.',
  }),
  streamBytesMax: define({
    group: 'Memory and threads',
    kind: size({ min: 4 * KIB, max: GIB }),
    default: 64 * MIB,
    doc: 'Memory that one stream may grow to. The default is lowered to `memory` where that is less.',
  }),
};

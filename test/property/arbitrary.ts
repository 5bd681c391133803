import fc from 'fast-check';
import type { TestEvent } from './frame-run.js';

export const epochs = fc.string({
  unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789'),
  minLength: 8,
  maxLength: 16,
});

/** Seqs of every size, with those around a change of length and the largest among them. */
export const seqs = fc.oneof(
  fc.nat(200),
  fc
    .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: -3, max: 3 }))
    .map(([e, d]) => Math.max(0, 10 ** e + d)),
  fc.maxSafeNat(),
);

const fragments = fc.constantFrom(
  '\r',
  '\n',
  '\r\n',
  '\t',
  '\0',
  ' ',
  ':',
  'data: ',
  'id: 7\n',
  '\ufeff',
  '\u2028',
  'x',
);

/** Text that tries to break a frame: full of line breaks, fields and what looks like them. */
export const texts = fc.oneof(
  fc.array(fragments, { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ minLength: 60, maxLength: 600 }),
);

export const eventTypes = fc.oneof(
  fc.constantFrom(null, 'message', '', 'tick', 'tock', ' tick', 'größe', 'x'.repeat(128)),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => text.replace(/[\r\n\0]/g, '_')),
);

export const testEvents: fc.Arbitrary<TestEvent[]> = fc.array(
  fc.record({
    type: eventTypes,
    data: fc.oneof({ weight: 3, arbitrary: texts }, fc.uint8Array({ maxLength: 40 })),
  }),
  { maxLength: 12 },
);

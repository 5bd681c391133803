import { test } from 'node:test';
import fc from 'fast-check';
import { ProducerMachine, producerSteps } from './producer-machine.js';

const counts = fc.tuple(fc.integer({ min: 1, max: 45 }), fc.integer({ min: 1, max: 45 }));

test('3.4 every publish is appended once, repeats are told their place, and the rest is refused, as a list of all would have it', () => {
  fc.assert(
    fc.property(counts, producerSteps, (countMax, steps) => {
      const machine = new ProducerMachine(countMax);
      for (const step of steps) machine.take(step);
      machine.end();
    }),
    { numRuns: 400 },
  );
});

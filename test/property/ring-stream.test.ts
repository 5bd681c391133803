import { test } from 'node:test';
import fc from 'fast-check';
import { createRings, Rings } from '#gapless/ring/rings.js';
import { RingMachine, type StreamSetup } from './ring-machine.js';

/** One thing done to one of the two streams. */
interface Step {
  readonly shown: string;
  readonly run: (machine: RingMachine) => void;
}

function step(shown: string, run: (machine: RingMachine) => void): Step {
  return { shown, run };
}

const types = fc.constantFrom(null, null, 'tick');
const ifHeads = fc.constantFrom(null, null, null, 0, 1, -1);
const sizes = fc.oneof(
  fc.array(fc.nat(30), { minLength: 1, maxLength: 4 }),
  fc.array(fc.nat(3000), { minLength: 1, maxLength: 4 }),
  // More events than a first index ring has places for, and than the window of live readers holds.
  fc.tuple(fc.integer({ min: 1, max: 800 }), fc.nat(40)).map(([count, size]) => Array(count).fill(size)),
);
const bytesMax = fc.oneof(fc.nat(200), fc.nat(100_000), fc.constant(2 ** 24));

const appends: fc.Arbitrary<Step> = fc.oneof(
  fc
    .tuple(sizes, types, ifHeads)
    .map(([drawn, type, ifHead]) =>
      step(`append ${drawn.length} of ${drawn[0]} … bytes, type ${type}, ifHead ${ifHead}`, (machine) =>
        machine.append(drawn, type, ifHead),
      ),
    ),
  fc
    .tuple(fc.constantFrom('limit' as const, 'ring' as const, 'room' as const), fc.constantFrom(-1, 0, 1))
    .map(([what, off]) => step(`append the ${what} ${off}`, (machine) => machine.appendExactly(what, off))),
);

const reads: fc.Arbitrary<Step> = fc
  .tuple(fc.oneof(fc.nat(5), fc.nat(400), fc.nat(10_000)), bytesMax)
  .map(([back, bytes]) =>
    step(`read ${bytes} bytes from ${back} back`, (machine) => machine.read(back, bytes)),
  );
const readsFromFloor: fc.Arbitrary<Step> = fc
  .tuple(fc.constantFrom(-1, 0, 1, 2), bytesMax)
  .map(([up, bytes]) =>
    step(`read ${bytes} bytes from ${up} above the floor`, (machine) =>
      machine.read(Math.max(0, machine.model.keptEvents - up), bytes),
    ),
  );

const upkeep: fc.Arbitrary<Step> = fc.oneof(
  fc.constant(step('trim to retention', (machine) => machine.trimToRetention())),
  fc
    .oneof(fc.nat(3), fc.nat(2000))
    .map((up) => step(`trim ${up} events`, (machine) => machine.trimBelow(up))),
  fc
    .tuple(fc.constantFrom(0, 0, 1, 1 << 31), fc.constantFrom(0, 0, 1, 1 << 31))
    .map(([interest, dirty]) =>
      step(`masks ${interest} ${dirty}`, (machine) => machine.setMasks(interest, dirty)),
    ),
);
const endings: fc.Arbitrary<Step> = fc.oneof(
  fc.constant(step('close', (machine) => machine.close())),
  fc.constant(step('remove and open anew', (machine) => machine.reopen())),
);

const steps = fc.array(
  fc.tuple(
    fc.constantFrom(0, 0, 1),
    fc.oneof(
      { weight: 8, arbitrary: appends },
      { weight: 6, arbitrary: reads },
      { weight: 4, arbitrary: readsFromFloor },
      { weight: 3, arbitrary: upkeep },
      { weight: 1, arbitrary: endings },
    ),
  ),
  { minLength: 1, maxLength: 60, size: 'max' },
);

const limits = fc.record({
  events: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 2500 })),
  bytes: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 6000 }), fc.integer({ min: 1, max: 400_000 })),
});

/** A number and what lies shortly before it. */
function shortlyBefore(value: number, by: number): fc.Arbitrary<number> {
  return fc.nat(by).map((distance) => value - distance);
}

const firstSeqs = fc.oneof(
  fc.constant(1),
  shortlyBefore(2 ** 31 + 1, 300),
  shortlyBefore(2 ** 32 + 1, 300),
  shortlyBefore(2 ** 53 - 1, 3000),
);
const firstPositions = fc.oneof(
  fc.constant(0),
  shortlyBefore(2 ** 31, 10_000),
  shortlyBefore(2 ** 32, 10_000),
);

function setups(orderMax: number): fc.Arbitrary<StreamSetup> {
  return fc.record({
    limits,
    dataBytesMax: fc.integer({ min: 12, max: orderMax }).map((order) => 2 ** order),
    firstSeq: firstSeqs,
    firstPosition: firstPositions.map((position) => position | 0),
  });
}

/** Two streams that share one arena, so that what one gives back the other takes; read by another view on it. */
function twoMachines(memoryBytes: number, setups: readonly [StreamSetup, StreamSetup]): RingMachine[] {
  const buffers = createRings({ streamsMax: 2, memoryBytes });
  const rings = new Rings(buffers);
  const readerRings = new Rings(buffers);
  return setups.map((setup, slot) => new RingMachine(rings, readerRings, slot, setup));
}

/** Runs the steps on two streams over one arena; the streams check themselves against their models. */
function runSteps(
  memoryBytes: number,
  drawn: readonly [StreamSetup, StreamSetup],
  todo: readonly (readonly [number, Step])[],
): void {
  const machines = twoMachines(memoryBytes, drawn);
  for (const [which, { run }] of todo) run(machines[which] as RingMachine);
  for (const machine of machines) machine.readAll();
}

function shown(todo: readonly (readonly [number, Step])[]): string {
  return todo.map(([which, step]) => `${which}: ${step.shown}`).join('\n');
}

function assertModelled(memory: fc.Arbitrary<number>, orderMax: number, numRuns: number): void {
  fc.assert(
    fc.property(memory, setups(orderMax), setups(orderMax), steps, (memoryBytes, first, second, todo) => {
      try {
        runSteps(memoryBytes, [first, second], todo);
      } catch (error) {
        throw new Error(`in ${memoryBytes} bytes, ${JSON.stringify([first, second])}\n${shown(todo)}`, {
          cause: error,
        });
      }
    }),
    { numRuns },
  );
}

test('every read gives exactly the frames of a plain list, or what the list says, with memory to spare (I1, I5)', () => {
  assertModelled(fc.constant(8 * 2 ** 20), 20, 250);
});

test('every read gives exactly the frames of a plain list when two streams fight for a small arena (I1, I5)', () => {
  assertModelled(
    fc.integer({ min: 1, max: 48 }).map((units) => units * 1024),
    15,
    1200,
  );
});

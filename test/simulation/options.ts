import { Prng } from '../support/prng.js';

/** What a seed draws before anything happens: which faults there are, and how large everything is. */
export interface SimulationOptions {
  readonly durable: boolean;
  /** Commits do not wait for the medium; a machine that goes down may forget them. */
  readonly fsyncInterval: boolean;
  readonly edges: number;
  readonly streams: number;
  readonly publishers: number;
  readonly readers: number;
  readonly pageReaders: number;
  /** How long the faults go on, milliseconds. */
  readonly safetyMs: number;
  readonly memoryBytes: number;
  readonly streamBytesMax: number;
  readonly retentionEvents: number;
  readonly retentionBytes: number;
  readonly retentionAgeMs: number;
  readonly ttlMs: number;
  readonly ringBytes: number;
  readonly logBytesMax: number;
  readonly writeBytesMax: number;
  readonly heartbeatIntervalMs: number;
  readonly eventBytesMax: number;
  readonly batchEventsMax: number;
  readonly publishPauseMs: number;
  /** Longest time between two steps of one thread of the broker. */
  readonly threadLateMs: number;
  readonly messageMs: number;
  readonly accessesPerInterrupt: number;
  readonly windowBytesMin: number;
  readonly windowBytesMax: number;
  readonly readBytesMax: number;
  readonly readPauseMs: number;
  readonly latencyMs: number;
  readonly saysFullLate: boolean;
  /** Chances of what may happen to a connection, for each that is made. */
  readonly breakChance: number;
  readonly halfOpenChance: number;
  readonly stuckChance: number;
  readonly lostAnswerChance: number;
  /** Chance of publishers who say which publish it is, and send it again until they know. */
  readonly claimChance: number;
  /** Chance of readers that see some types only, and of those who want refusals in-band. */
  readonly filterChance: number;
  readonly inBandChance: number;
  readonly strangeCursorChance: number;
  readonly closeChance: number;
  readonly deleteChance: number;
  readonly createChance: number;
  /** Time between two crashes, at least and about; 0: there are none. */
  readonly crashEveryMs: number;
  readonly machineCrashChance: number;
  /** Chance that instead of a crash the broker is told to end. */
  readonly stopChance: number;
  readonly commitMs: number;
  readonly commitFailChance: number;
  /** Chance that a commit that failed has reached the medium all the same; the log is of no use then. */
  readonly tornChance: number;
  readonly replayMs: number;
  readonly replayFailChance: number;
}

/** Small and large sizes alike, and often the ends: what is drawn evenly is hardly ever small. */
export function drawOptions(seed: number): SimulationOptions {
  const prng = new Prng(seed);
  /** Whether this seed has a feature at all: seeds that have few of them are the ones that are understood. */
  const has = (chance: number): boolean => prng.chance(chance);
  const size = (min: number, max: number): number =>
    Math.round(min * (max / min) ** (prng.below(1001) / 1000));
  const chanceIf = (feature: number, least: number, most: number): number =>
    has(feature) ? least + ((most - least) * prng.below(1001)) / 1000 : 0;

  const durable = has(0.5);
  const streams = prng.pick([1, 1, 1, 2, 3]);
  const streamBytesMax = 2 ** prng.pick([12, 12, 12, 13, 14, 16]);
  const writeBytesMax = size(200, 20_000);
  return {
    durable,
    fsyncInterval: durable && has(0.3),
    edges: prng.pick([1, 1, 2, 2, 3]),
    streams,
    publishers: prng.pick([1, 1, 2, 2, 3, 5]),
    readers: prng.between(1, 5),
    pageReaders: prng.pick([0, 0, 1]),
    safetyMs: size(1_000, 8_000),
    memoryBytes: has(0.3) ? streams * size(6 * 1024, 20 * 1024) : 2 ** 19,
    streamBytesMax,
    retentionEvents: has(0.4) ? size(1, 200) : 0,
    retentionBytes: has(0.3) ? size(100, streamBytesMax / 2) : 0,
    retentionAgeMs: has(0.15) ? size(1000, 5000) : 0,
    ttlMs: has(0.1) ? size(500, 5000) : 0,
    ringBytes: 4096,
    logBytesMax: durable && has(0.15) ? size(2_000, 50_000) : 0,
    writeBytesMax,
    heartbeatIntervalMs: size(500, 15_000),
    eventBytesMax: has(0.3) ? size(1000, 3000) : size(10, 300),
    batchEventsMax: has(0.5) ? size(1, 40) : 1,
    publishPauseMs: size(5, 400),
    threadLateMs: prng.pick([0, 0, 1, 5]),
    messageMs: prng.pick([0, 1, 10]),
    accessesPerInterrupt: prng.pick([0, 4, 15, 60]),
    windowBytesMin: size(20, 2000),
    windowBytesMax: size(2000, 100_000),
    readBytesMax: has(0.5) ? size(20, 1000) : 10_000,
    readPauseMs: prng.pick([0, 1, 10, 50]),
    latencyMs: prng.pick([0, 1, 20, 100]),
    saysFullLate: has(0.5),
    breakChance: chanceIf(0.7, 0.1, 0.9),
    halfOpenChance: chanceIf(0.3, 0.1, 0.5),
    stuckChance: chanceIf(0.4, 0.1, 0.5),
    lostAnswerChance: chanceIf(0.5, 0.05, 0.5),
    claimChance: chanceIf(0.7, 0.3, 1),
    filterChance: chanceIf(0.3, 0.1, 0.6),
    inBandChance: chanceIf(0.4, 0.2, 0.8),
    strangeCursorChance: chanceIf(0.3, 0.05, 0.3),
    closeChance: chanceIf(0.2, 0.05, 0.3),
    deleteChance: chanceIf(0.25, 0.05, 0.3),
    createChance: chanceIf(0.3, 0.05, 0.3),
    crashEveryMs: has(0.4) ? size(1_000, 6_000) : 0,
    machineCrashChance: chanceIf(0.5, 0.2, 0.8),
    commitMs: prng.pick([0, 1, 5, 40, 300]),
    commitFailChance: chanceIf(0.3, 0.02, 0.3),
    tornChance: chanceIf(0.3, 0.1, 0.6),
    replayMs: prng.pick([0, 2, 20, 200]),
    replayFailChance: chanceIf(0.2, 0.02, 0.3),
    stopChance: chanceIf(0.4, 0.2, 1),
  };
}

/** The options that say something, on one line. */
export function showOptions(options: SimulationOptions): string {
  return Object.entries(options)
    .filter(([, value]) => value !== 0 && value !== false)
    .map(([name, value]) => `${name}=${typeof value === 'number' ? Number(value.toFixed(3)) : value}`)
    .join(' ');
}

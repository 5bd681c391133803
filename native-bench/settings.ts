import { parseArgs } from 'node:util';

/** What is measured and how large. Counts unless the name ends in a unit. */
export interface Settings {
  readonly runs: number;
  /** For each micro case. */
  readonly microSeconds: number;
  readonly durationMs: number;
  readonly warmUpMs: number;
  readonly subscribers: number;
  readonly publishers: number;
  readonly stormEvents: number;
  readonly stormTimes: number;
  readonly idleSubscribers: number;
  /** Those who read slowly beside the subscribers of a fan-out. */
  readonly slowSubscribers: number;
  /** What growth ends with. */
  readonly manyStreams: number;
  readonly manySubscribers: number;
  /** With a subscriber each, beside a peer. */
  readonly peerStreams: number;
  /** What a peer that failed gets before it is tried again. */
  readonly peerRestMs: number;
  readonly durablePublishers: number;
  readonly batchEvents: number;
  /** Those who replay a log side by side, and how far they are behind. */
  readonly replaySubscribers: number;
  readonly replayEvents: number;
  /** Those who come back to a log while others watch a stream live. */
  readonly surgeSubscribers: number;
  readonly surgeEvents: number;
  /** Requests that are begun and never ended, and connects and forged tokens a second beside them. */
  readonly halfOpenRequests: number;
  readonly attackRate: number;
  readonly liveSubscribers: number;
  /** Publishes a second. */
  readonly liveRate: number;
  readonly eventBytes: number;
  /** Whether the sizes are those that the targets are stated for. */
  readonly judged: boolean;
}

/** What the command line asks for. */
export interface Command {
  readonly settings: Settings;
  /** Names of scenarios; empty: all. */
  readonly only: readonly string[];
  /** Beside what others offer, as far as it is installed, instead of the scenarios of ours. */
  readonly peers: boolean;
  /** Brokers that share a log, and one that does not, instead of the others. */
  readonly log: boolean;
  /** Both. */
  readonly all: boolean;
  readonly microOnly: boolean;
  readonly jsonFile: string | null;
  readonly svgFile: string | null;
  /** The entry of the broker's build; null: of this checkout. */
  readonly brokerFile: string | null;
  /** Where durable brokers of the bench keep their data while it runs; null: the system's place for temporary files. */
  readonly dataParent: string | null;
  readonly compileOnly: boolean;
  readonly help: boolean;
}

const FULL: Settings = {
  runs: 5,
  microSeconds: 1,
  durationMs: 3000,
  warmUpMs: 1000,
  subscribers: 500,
  publishers: 32,
  stormEvents: 1000,
  stormTimes: 5,
  idleSubscribers: 15_000,
  slowSubscribers: 50,
  manyStreams: 10_000,
  manySubscribers: 10_000,
  peerStreams: 5000,
  peerRestMs: 2000,
  durablePublishers: 64,
  batchEvents: 100,
  replaySubscribers: 200,
  replayEvents: 50_000,
  surgeSubscribers: 2000,
  surgeEvents: 10_000,
  halfOpenRequests: 5000,
  attackRate: 1000,
  liveSubscribers: 100,
  liveRate: 250,
  eventBytes: 100,
  judged: true,
};

const QUICK: Settings = { ...FULL, runs: 1, microSeconds: 0.2, durationMs: 500, warmUpMs: 300 };

/** Proves in seconds that the bench works and the ids are right; its numbers mean nothing. */
const SMOKE: Settings = {
  ...FULL,
  runs: 1,
  microSeconds: 0.02,
  durationMs: 200,
  warmUpMs: 0,
  subscribers: 50,
  stormEvents: 200,
  stormTimes: 2,
  idleSubscribers: 200,
  slowSubscribers: 5,
  manyStreams: 100,
  manySubscribers: 100,
  peerStreams: 50,
  peerRestMs: 10,
  durablePublishers: 8,
  replaySubscribers: 20,
  replayEvents: 3000,
  surgeSubscribers: 100,
  surgeEvents: 1000,
  halfOpenRequests: 100,
  liveSubscribers: 20,
  judged: false,
};

const sizesOf = (s: Settings) => `${s.runs} round${s.runs === 1 ? '' : 's'} of ${s.durationMs / 1000} s`;

export const USAGE = `usage: npm run bench [-- OPTION...]

  --quick          shorter: ${sizesOf(QUICK)} (default ${sizesOf(FULL)})
  --smoke          tiny sizes, to see that everything works; no verdict
  --runs N         rounds
  --seconds S      of each measurement
  --only A,B       only these scenarios
  --peers          measure side by side with what others offer, as far as it is installed
  --all            that, and everything else but --log
  --log            brokers that share a log, beside one with a log of its own; needs nats-server
  --micro          only the micro suites: pieces of the hot path, without sockets
  --svg FILE       draw the rates as a chart
  --json FILE      write everything that was measured
  --broker FILE    measure another build of the broker (its main.js)
  --data DIR       put the durable brokers' data there; the disk decides what a commit takes
  --compile        only compile the load client and print where it is
  --help           this text
`;

/** A command line that cannot be followed; the message says why. */
export class UsageError extends Error {}

/** @throws UsageError */
export function parseCommand(argv: readonly string[]): Command {
  const values = parseOptions(argv);
  const preset = values.smoke ? SMOKE : values.quick ? QUICK : FULL;
  const settings = {
    ...preset,
    runs: positive('--runs', values.runs, preset.runs),
    durationMs: Math.ceil(positive('--seconds', values.seconds, preset.durationMs / 1000) * 1000),
  };
  if (!Number.isInteger(settings.runs)) throw new UsageError(`--runs: ${values.runs}, expected an integer`);
  return {
    settings,
    only: values.only?.split(',') ?? [],
    peers: values.peers ?? false,
    log: values.log ?? false,
    all: values.all ?? false,
    microOnly: values.micro ?? false,
    jsonFile: values.json ?? null,
    svgFile: values.svg ?? null,
    brokerFile: values.broker ?? null,
    dataParent: values.data ?? null,
    compileOnly: values.compile ?? false,
    help: values.help ?? false,
  };
}

function parseOptions(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        quick: { type: 'boolean' },
        smoke: { type: 'boolean' },
        runs: { type: 'string' },
        seconds: { type: 'string' },
        only: { type: 'string' },
        peers: { type: 'boolean' },
        log: { type: 'boolean' },
        all: { type: 'boolean' },
        micro: { type: 'boolean' },
        json: { type: 'string' },
        svg: { type: 'string' },
        broker: { type: 'string' },
        data: { type: 'string' },
        compile: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause });
  }
}

function positive(flag: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (value > 0 && value <= 3600) return value;
  throw new UsageError(`${flag}: ${text}, expected a number above 0, at most 3600`);
}

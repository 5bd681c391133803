import { type Definition, define } from './definition.js';
import { DURABILITY_DEFINITIONS } from './durability-settings.js';
import { choice, type Kind, list, onOff, path, size, text, time, wholeNumber } from './kinds.js';
import { LIMIT_DEFINITIONS } from './limit-settings.js';
import { MCP_DEFINITIONS } from './mcp-settings.js';
import { SECURITY_DEFINITIONS } from './security-settings.js';
import { isCorsOrigin, isHost, isStreamPattern } from './text-forms.js';

/**
 * Every setting of the broker, in the order in which people read about them. Flags, environment variables,
 * keys of the config file, validation, usage text and the README's table all come from here (contract 11).
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

const DEFINITIONS = {
  port: define({
    group: 'Network',
    kind: wholeNumber({ min: 0, max: 65_535 }),
    default: 8080,
    doc: 'TCP port to listen on. 0 takes any that is free.',
  }),
  host: define({
    group: 'Network',
    kind: text({ placeholder: 'HOST', expected: 'an IP address or a host name', isValid: isHost }),
    default: '127.0.0.1',
    doc: 'Address to listen on. Any but a loopback address needs keys, or `insecure`.',
  }),
  insecure: define({
    group: 'Network',
    kind: onOff(),
    default: false,
    doc: 'Allow an address that others can reach although nobody has to authenticate.',
  }),
  corsOrigins: define({
    group: 'Network',
    kind: list({
      placeholder: 'ORIGIN',
      expected: 'an origin as browsers send it (https://app.example), or *',
      isValid: isCorsOrigin,
      itemsMax: 1000,
    }),
    default: [],
    doc: 'Origins whose pages may use the API from a browser. `*` allows all.',
  }),
  hostNames: define({
    group: 'Network',
    kind: list({ placeholder: 'NAME', expected: 'a host name', isValid: isHost, itemsMax: 1000 }),
    default: [],
    doc: 'Names with a dot that a broker without keys may be called by, such as that of a proxy before it.',
  }),
  connectionsMax: define({
    group: 'Network',
    kind: wholeNumber({ min: 0, max: 1_000_000, unit: 'connections' }),
    default: 0,
    doc: 'Connections in use at a time: event streams, WebSockets and requests under way. 0 takes what the descriptor limit of the process allows.',
  }),
  ...SECURITY_DEFINITIONS,
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
  ...DURABILITY_DEFINITIONS,
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
  ...MCP_DEFINITIONS,
  ...LIMIT_DEFINITIONS,
  config: define({
    group: 'Operations',
    kind: path('FILE'),
    default: null,
    doc: 'JSON file with settings, its keys named as here. The only setting that cannot stand in the file itself.',
  }),
  drainMs: define({
    group: 'Operations',
    kind: time({ min: 0, max: 10 * MINUTE_MS }),
    default: 5 * SECOND_MS,
    doc: 'Time over which subscribers are sent away when the broker is told to end.',
  }),
  console: define({
    group: 'Operations',
    kind: onOff(),
    default: true,
    doc: 'Serve the console for operators at `/console`. What it shows needs the right `admin`.',
  }),
  metricsStreams: define({
    group: 'Operations',
    kind: list({
      placeholder: 'STREAM',
      expected: 'a stream name, or the beginning of one and *',
      isValid: isStreamPattern,
      itemsMax: 1000,
    }),
    default: [],
    doc: 'Streams with metrics of their own. A final `*` takes all that begin so.',
  }),
  metricsStreamsTop: define({
    group: 'Operations',
    kind: wholeNumber({ min: 0, max: 1000, unit: 'streams' }),
    default: 10,
    doc: 'Streams with metrics of their own because their lag is largest. 0 for none.',
  }),
  logLevel: define({
    group: 'Operations',
    kind: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    doc: 'Least important lines that are logged.',
  }),
};

type Definitions = typeof DEFINITIONS;

export type SettingKey = keyof Definitions;

/**
 * The settings in force: plain data, so that it can be handed to worker threads. Sizes are bytes, and times
 * are milliseconds.
 */
export type Config = {
  readonly [Key in SettingKey]: Definitions[Key] extends Definition<infer T> ? T : never;
};

/** One row of the table, with the names it goes by. */
export interface Setting extends Omit<Definition<unknown>, 'kind'> {
  readonly key: SettingKey;
  /** Long flag with its dashes, such as `--drain-ms`. */
  readonly flag: string;
  /** Environment variable, such as `GAPLESS_DRAIN_MS`. */
  readonly env: string;
  readonly kind: Kind<unknown>;
}

export const ENV_PREFIX = 'GAPLESS_';

export const SETTINGS: readonly Setting[] = Object.entries(DEFINITIONS).map(([key, definition]) => {
  const words = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return {
    ...(definition as Definition<unknown>),
    key: key as SettingKey,
    flag: `--${words}`,
    env: ENV_PREFIX + words.toUpperCase().replaceAll('-', '_'),
  };
});

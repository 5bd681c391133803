import { define } from './definition.js';
import { choice, list, path, size, text, time, wholeNumber } from './kinds.js';
import { isJetStreamName, isNatsUrl } from './text-forms.js';
import { GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

/** What keeps streams over a restart, and how they are read from there. */
export const DURABILITY_DEFINITIONS = {
  dataDir: define({
    group: 'Durability',
    kind: path('DIR'),
    default: null,
    doc: 'Directory that keeps streams over a restart; made if it is not there. Without it, and without `log`, they are in memory only.',
  }),
  dataDirWaitMs: define({
    group: 'Durability',
    kind: time({ min: 0, max: HOUR_MS }),
    default: 0,
    doc: 'Time to wait at the start until the process that has `dataDir` has ended. 0 does not wait.',
  }),
  fsync: define({
    group: 'Durability',
    kind: choice(['always', 'interval']),
    default: 'always',
    doc:
      'When a commit reaches the disk: before it is acknowledged, or within `fsyncIntervalMs`. With `interval` a ' +
      'crash of the machine, not of the broker, loses the events: streams begin anew, under another epoch.',
  }),
  fsyncIntervalMs: define({
    group: 'Durability',
    kind: time({ min: 1, max: 10 * SECOND_MS }),
    default: 100,
    doc: 'Time between two syncs to disk where `fsync` is `interval`.',
  }),
  logBytesMax: define({
    group: 'Durability',
    kind: size({ min: 0, max: 1024 * GIB }),
    default: 0,
    doc:
      'Events of all streams on disk, in bytes. Above it the oldest go, whichever stream they are of, but for the ' +
      'newest block of each. 0 sets no such limit. With `log`: what each of its servers may keep, above which publishes ' +
      'are refused; set for all brokers by the last that starts, and 0 leaves it as it is.',
  }),
  log: define({
    group: 'Durability',
    kind: list({
      placeholder: 'URL',
      expected:
        'a URL such as nats://127.0.0.1:4222, or tls://; user:password@ or token@ may stand before the host',
      isValid: isNatsUrl,
      itemsMax: 16,
    }),
    default: [],
    doc:
      'NATS servers of one cluster, with JetStream, that keep the streams instead of a data directory. Several brokers ' +
      'may share them: each serves every stream.',
  }),
  logCredentialsFile: define({
    group: 'Durability',
    kind: path('FILE'),
    default: null,
    doc:
      'File that says who this broker is to the servers of `log`: a .creds of NATS, or one line, user:password or a ' +
      'token. Read again with each connection.',
  }),
  logTlsCaFile: define({
    group: 'Durability',
    kind: path('FILE'),
    default: null,
    doc:
      'PEM file with those who vouch for the certificates of the servers of `log`; it makes TLS a must, as tls:// does. ' +
      'Without it those whom Node trusts.',
  }),
  logTlsCertFile: define({
    group: 'Durability',
    kind: path('FILE'),
    default: null,
    doc: 'PEM file with the certificate of this broker, where the servers of `log` ask for one.',
  }),
  logTlsKeyFile: define({
    group: 'Durability',
    kind: path('FILE'),
    default: null,
    doc: 'PEM file with the key of `logTlsCertFile`, without a passphrase.',
  }),
  logStream: define({
    group: 'Durability',
    kind: text({ placeholder: 'NAME', expected: 'letters, digits, - and _', isValid: isJetStreamName }),
    default: 'GAPLESS',
    doc: 'Name of the JetStream stream that has the log; made if it is not there.',
  }),
  logReplicas: define({
    group: 'Durability',
    kind: wholeNumber({ min: 1, max: 5, unit: 'servers' }),
    default: 1,
    doc: 'NATS servers that keep each event, where the log is made. With 3 one may fail; 1 is no replication.',
  }),
  logWaitMs: define({
    group: 'Durability',
    kind: time({ min: 0, max: 10 * MINUTE_MS }),
    default: 30 * SECOND_MS,
    doc: 'Time for which a broker that starts waits for the servers of `log`.',
  }),
  ringBytes: define({
    group: 'Durability',
    kind: size({ min: 4 * KIB, max: GIB }),
    default: 4 * MIB,
    doc: 'Newest bytes of a durable stream in memory, unless others need it. Older ones are on disk only.',
  }),
  replayThreads: define({
    group: 'Durability',
    kind: wholeNumber({ min: 1, max: 16, unit: 'threads' }),
    default: 1,
    doc: 'Threads that read from disk for readers who are far behind.',
  }),
  replayQueueMax: define({
    group: 'Durability',
    kind: wholeNumber({ min: 1, max: 100_000, unit: 'reads' }),
    default: 256,
    doc: 'Reads from disk that wait at a time, identical ones counted once. Readers beyond that wait for their turn.',
  }),
  replayCacheBytes: define({
    group: 'Durability',
    kind: size({ min: MIB, max: GIB }),
    default: 16 * MIB,
    doc: 'Memory of each thread for what was read from disk, shared by all who read the same.',
  }),
};

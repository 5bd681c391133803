/**
 * The replicated log on a JetStream stream of NATS: a subject for each stream and, below it, for each of its named
 * subscribers; a message for each entry. JetStream orders the messages, and replicates them before it acknowledges.
 *
 * A server that has the log alone is asked to compare the newest of a subject with the one that a message is to follow.
 * Several are not: what becomes of two that come at once differs from version to version. Some servers take both, some the
 * first, and some find out only when they apply what was agreed on, each by what it has by then; and then they have
 * different messages under the same positions, for good (nats-server pulls 6194 and 6426, and seen while 2.10.27 was
 * replaced by 2.15.1).
 */

import {
  AckPolicy,
  DeliverPolicy,
  JetStreamApiCodes,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { headers, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { assert } from '../../assert.js';
import { LogError } from '../event-log.js';
import type {
  Follower,
  LogExtent,
  LogUsage,
  ReplicatedLog,
  StoredEntry,
  StoredSubscriber,
  SubscriberLog,
} from '../replicated-log.js';
import {
  ANSWER_MS_MAX,
  connectToServers,
  dropSocket,
  type JetStreamAccess,
  refusalOf,
} from './jetstream-connection.js';
import { JetStreamDropping } from './jetstream-dropping.js';
import { asLogError, attempt, hasCode } from './jetstream-faults.js';
import { JetStreamFollowing } from './jetstream-following.js';
import { reportOf } from './jetstream-report.js';
import { type JetStreamSettings, openStream } from './jetstream-stream.js';
import { JetStreamSubjects } from './jetstream-subjects.js';
import { decodeEntry, encodeEntry, type LogEntry } from './log-entry.js';
import { PurgeJudge } from './purge-judge.js';
import { AGREES_SINCE, isBefore } from './server-version.js';
import { decodeSubscriberEntry, encodeSubscriberEntry } from './subscriber-entry.js';

export interface JetStreamLogOptions extends JetStreamAccess, JetStreamSettings {
  /** Told when the connection is there again after it was not, and when it is not. */
  readonly connected: (isConnected: boolean) => void;
  /** Told at the start of a version, where servers with replicas may come to differ (server-version.ts). */
  readonly outdated: (version: string) => void;
  /** Told why the servers refuse a connection that is made anew. It is tried again. */
  readonly refused: (reason: string) => void;
  /** Told when no connection will be made any more, although nobody has closed the log. */
  readonly ended: (error: Error) => void;
}

const ENTRY_HEADER = 'Gapless-Entry';
/** Of a message, for its headers. */
const HEADER_BYTES_MAX = 64 * 1024;

interface StoredMessage {
  readonly subject: string;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
  readonly at: number;
}

export class JetStreamLog implements ReplicatedLog {
  readonly #options: JetStreamLogOptions;
  readonly #connection: NatsConnection;
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #subjects: JetStreamSubjects;
  readonly #dropping: JetStreamDropping;
  isExact = false;
  /** Of the server that was connected last: while there is none, nothing is too large. */
  #payloadBytesMax = 0;
  /** Of the stream, which somebody may have given one. */
  #messageBytesMax = Number.POSITIVE_INFINITY;
  #isOpen = false;
  #isClosing = false;

  private constructor(options: JetStreamLogOptions, connection: NatsConnection, manager: JetStreamManager) {
    this.#options = options;
    this.#connection = connection;
    this.#client = jetstream(connection, { timeout: ANSWER_MS_MAX });
    this.#manager = manager;
    this.#subjects = new JetStreamSubjects(options.stream);
    const { stream } = options;
    this.#dropping = new JetStreamDropping(manager, {
      stream,
      nextAt: (subject, from) => this.#nextAt(subject, from),
      judge: new PurgeJudge({
        report: () => reportOf(options, stream),
        nowMs: () => performance.now(),
      }),
    });
    this.#takeServer();
    void this.#watch();
  }

  /** @throws as {@link connectToServers}. */
  static async connect(options: JetStreamLogOptions): Promise<JetStreamLog> {
    const connection = await connectToServers(options);
    const manager = await attempt(() =>
      jetstreamManager(connection, { timeout: ANSWER_MS_MAX, checkAPI: false }),
    );
    return new JetStreamLog(options, connection, manager);
  }

  get bodyBytesMax(): number {
    return Math.min(this.#payloadBytesMax, this.#messageBytesMax) - HEADER_BYTES_MAX;
  }

  async open(): Promise<LogExtent> {
    const subjects = this.#subjects.all;
    const isStart = !this.#isOpen;
    const { config, created, state } = await attempt(() =>
      openStream(this.#manager, { ...this.#options, subjects, isStart }),
    );
    this.#isOpen = true;
    this.#takeSettings(config);
    const version = this.#connection.info?.version ?? '';
    if (isStart && !this.isExact && isBefore(version, AGREES_SINCE)) this.#options.outdated(version);
    if (this.bodyBytesMax > 0)
      return { identity: `${config.description} ${created}`, lastAt: state.last_seq };
    throw new LogError(
      'broken',
      `max_payload and max_msg_size of the log have to be more than ${HEADER_BYTES_MAX}`,
    );
  }

  async append(
    stream: string,
    entry: LogEntry,
    body: Uint8Array,
    after: number | null,
  ): Promise<number | null> {
    // It was judged by other settings.
    if (body.length > this.bodyBytesMax)
      throw new LogError('full', 'more than a message of the log may have');
    const described = headers();
    described.set(ENTRY_HEADER, encodeEntry(entry));
    return this.#publish(this.#subjects.ofStream(stream), body, { after, headers: described });
  }

  async newest(stream: string): Promise<StoredEntry | null> {
    return this.#toStored(await this.#get({ last_by_subj: this.#subjects.ofStream(stream) }));
  }

  async next(stream: string, from: number): Promise<StoredEntry | null> {
    return this.#toStored(await this.#get({ seq: from, next_by_subj: this.#subjects.ofStream(stream) }));
  }

  async writerAt(at: number): Promise<string | null> {
    const found = await this.#get({ seq: at });
    if (found === null) return null;
    const isStream = this.#subjects.read(found.subject).subscriber === null;
    return (isStream ? this.#entryOf(found) : this.#subscriberOf(found)).entry.writer;
  }

  dropBelow(stream: string, at: number): Promise<void> {
    return this.#drop(this.#subjects.ofStream(stream), at);
  }

  readonly subscribers: SubscriberLog = {
    append: (key, entry, after) =>
      this.#publish(this.#subjects.ofSubscriber(key), encodeSubscriberEntry(entry), { after }),
    newest: async (key) =>
      this.#toSubscriber(await this.#get({ last_by_subj: this.#subjects.ofSubscriber(key) })),
    next: async (key, from) =>
      this.#toSubscriber(await this.#get({ seq: from, next_by_subj: this.#subjects.ofSubscriber(key) })),
    dropBelow: (stream, subscriber, at) =>
      this.#drop(
        subscriber === null
          ? this.#subjects.ofSubscribers(stream)
          : this.#subjects.ofSubscriber({ stream, subscriber }),
        at,
      ),
  };

  async usage(): Promise<LogUsage> {
    const { config, state } = await attempt(() => this.#manager.streams.info(this.#options.stream));
    // Somebody may have changed them.
    this.#takeSettings(config);
    return { bytes: state.bytes, bytesMax: config.max_bytes > 0 ? config.max_bytes : null };
  }

  confirm(): Promise<void> {
    return attempt(() => this.#dropping.dropNothing());
  }

  follow(lastAt: number, follower: Follower): Promise<() => void> {
    return attempt(() =>
      JetStreamFollowing.start(this.#connection, this.#manager, {
        stream: this.#options.stream,
        subjects: this.#subjects.all,
        // One server alone has all that there is, also where somebody has deleted the newest of a subject.
        lastAt: this.isExact ? 0 : lastAt,
        nextAt: (from) => this.#nextAt(this.#subjects.all, from),
        config: {
          ack_policy: AckPolicy.None,
          deliver_policy: DeliverPolicy.LastPerSubject,
          mem_storage: true,
          num_replicas: 1,
        },
        received: (message, at) => {
          const { subject, data, headers: described } = message;
          const read = { subject, data, headers: described, at };
          if (this.#subjects.read(subject).subscriber === null) follower.received(this.#entryOf(read));
          else follower.receivedSubscriber(this.#subscriberOf(read));
        },
        upToDate: () => follower.upToDate(),
        lost: (reason) => follower.lost(reason),
        failed: (error) => follower.failed(error),
      }),
    );
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#connection.close();
    dropSocket(this.#connection);
  }

  #takeSettings({ num_replicas, max_msg_size = 0 }: StreamConfig): void {
    this.isExact = num_replicas === 1;
    this.#messageBytesMax = max_msg_size > 0 ? max_msg_size : Number.POSITIVE_INFINITY;
  }

  #takeServer(): void {
    const { info } = this.#connection;
    if (info === undefined) return;
    this.#payloadBytesMax = info.max_payload;
  }

  async #watch(): Promise<void> {
    const { connected, refused, ended } = this.#options;
    let said: string | null = null;
    for await (const status of this.#connection.status()) {
      if (status.type === 'staleConnection') dropSocket(this.#connection);
      if (status.type === 'disconnect') connected(false);
      if (status.type === 'reconnect') {
        said = null;
        this.#takeServer();
        connected(true);
      }
      // Once, and not with each of the attempts.
      const refusal = status.type === 'error' ? refusalOf(status.error) : null;
      if (refusal !== null && refusal !== said) refused(refusal);
      said = refusal ?? said;
    }
    const error = await this.#connection.closed();
    if (!this.#isClosing) ended(error ?? new Error('the connection to the log was closed'));
  }

  /** @returns the position of the message; null: another one is the newest of the subject, which only one server says. */
  async #publish(
    subject: string,
    body: Uint8Array,
    { after, headers: described }: { after: number | null; headers?: MsgHdrs },
  ): Promise<number | null> {
    const askedAtMs = performance.now();
    try {
      const { seq } = await this.#client.publish(subject, body, {
        ...(described === undefined ? {} : { headers: described }),
        timeout: ANSWER_MS_MAX,
        expect: {
          streamName: this.#options.stream,
          ...(this.isExact && after !== null ? { lastSubjectSequence: after } : {}),
        },
      });
      return seq;
    } catch (cause) {
      if (hasCode(cause, JetStreamApiCodes.StreamWrongLastSequence)) return null;
      throw asLogError(cause, askedAtMs);
    }
  }

  async #get(query: object): Promise<StoredMessage | null> {
    const found = await attempt(() =>
      // The server knows more queries than the type does.
      this.#manager.streams.getMessage(this.#options.stream, query as { last_by_subj: string }),
    );
    if (found === null) return null;
    return { subject: found.subject, headers: found.header, data: found.data, at: found.seq };
  }

  async #nextAt(subject: string, from: number): Promise<number | null> {
    return (await this.#get({ seq: from, next_by_subj: subject }))?.at ?? null;
  }

  #drop(filter: string, below: number): Promise<void> {
    return attempt(() => this.#dropping.drop(filter, below, { isReplicated: !this.isExact }));
  }

  #toStored(message: StoredMessage | null): StoredEntry | null {
    return message === null ? null : this.#entryOf(message);
  }

  #toSubscriber(message: StoredMessage | null): StoredSubscriber | null {
    return message === null ? null : this.#subscriberOf(message);
  }

  #entryOf({ subject, headers: described, data, at }: StoredMessage): StoredEntry {
    const entry = decodeEntry(described?.get(ENTRY_HEADER) ?? '', this.#where(at));
    return { stream: this.#subjects.read(subject).stream, at, entry, body: data };
  }

  #subscriberOf({ subject, data, at }: StoredMessage): StoredSubscriber {
    const { stream, subscriber } = this.#subjects.read(subject);
    assert(subscriber !== null, 'only those of named subscribers were asked for');
    return { stream, subscriber, at, entry: decodeSubscriberEntry(data, this.#where(at)) };
  }

  #where(at: number): string {
    return `message ${at} of the JetStream stream ${this.#options.stream}`;
  }
}

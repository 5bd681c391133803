/**
 * Follows a JetStream stream: one consumer for all that a broker has to know, pushed as it comes and acknowledged by
 * nobody. That nothing is missing is seen by the consumer's own count, and by heartbeats while nothing comes.
 *
 * The servers choose which of them has the consumer, and one that has lost its disk, or was away, begins with what it has
 * by then. So it is asked elsewhere whether something is missing; such a one is given a moment, and then left.
 */

import type { ConsumerConfig, JetStreamManager } from '@nats-io/jetstream';
import { createInbox, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';

export interface FollowingOptions {
  readonly stream: string;
  readonly subjects: string;
  readonly config: Partial<ConsumerConfig>;
  /** How far the stream goes. */
  readonly lastAt: number;
  /** Position of the first message from a position on, as the leader has it; null: none. */
  readonly nextAt: (from: number) => Promise<number | null>;
  readonly received: (message: Msg, at: number) => void;
  readonly upToDate: () => void;
  readonly lost: (reason: string) => void;
  /** What was received threw this. */
  readonly failed: (error: Error) => void;
}

const HEARTBEAT_MS = 1000;
const HEARTBEATS_MISSED_MAX = 3;
/** How long a server may be behind the others that is followed. */
const BEHIND_MS_MAX = 1000;
/** The server forgets a consumer whose broker has gone. */
const INACTIVE_MS = 30_000;
const NANOS_PER_MS = 1_000_000;
const STATUS_CODE = 100;

export class JetStreamFollowing {
  readonly #options: FollowingOptions;
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #subscription: Subscription;
  readonly #watchdog: NodeJS.Timeout;
  #consumer = '';
  #count = 0;
  #missed = 0;
  /** Position of the newest message that was received. */
  #at = 0;
  #isAsking = false;
  #behind: NodeJS.Timeout | undefined;
  #isUpToDate = false;
  #ended = false;

  private constructor(
    connection: NatsConnection,
    manager: JetStreamManager,
    options: FollowingOptions,
    inbox: string,
  ) {
    this.#options = options;
    this.#connection = connection;
    this.#manager = manager;
    this.#subscription = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (this.#ended) return;
        if (error !== null) this.#lose(error.message);
        else this.#tryToReceive(message);
      },
    });
    this.#watchdog = setInterval(() => {
      if (++this.#missed > HEARTBEATS_MISSED_MAX) this.#lose('no heartbeat of the consumer');
    }, HEARTBEAT_MS);
  }

  /** @returns what ends it. */
  static async start(
    connection: NatsConnection,
    manager: JetStreamManager,
    options: FollowingOptions,
  ): Promise<() => void> {
    const inbox = createInbox();
    const following = new JetStreamFollowing(connection, manager, options, inbox);
    try {
      const { name, num_pending } = await manager.consumers.add(options.stream, {
        ...options.config,
        filter_subject: options.subjects,
        deliver_subject: inbox,
        flow_control: true,
        idle_heartbeat: HEARTBEAT_MS * NANOS_PER_MS,
        inactive_threshold: INACTIVE_MS * NANOS_PER_MS,
      });
      following.#consumer = name;
      // What had to be sent may have come before this answer.
      if (num_pending === 0 && following.#count === 0) following.#catchUp();
    } catch (error) {
      following.#end();
      throw error;
    }
    return () => following.#end();
  }

  /** What is thrown in a callback the library takes for the end of the connection, and reads no more of it. */
  #tryToReceive(message: Msg): void {
    try {
      this.#receive(message);
    } catch (error) {
      this.#end();
      this.#options.failed(error as Error);
    }
  }

  #receive(message: Msg): void {
    this.#missed = 0;
    if (message.headers?.code === STATUS_CODE) return this.#receiveStatus(message);
    const delivery = readDelivery(message.reply ?? '');
    if (delivery === null) return this.#lose(`a message that is not the consumer's: ${message.subject}`);
    if (delivery.count !== this.#count + 1) return this.#lose('a message is missing');
    this.#count = delivery.count;
    this.#at = delivery.at;
    this.#options.received(message, delivery.at);
    if (delivery.pending === 0) this.#catchUp();
  }

  /** A heartbeat, or the question whether so much has been taken (flow control). */
  #receiveStatus(message: Msg): void {
    const { headers } = message;
    const stalled = headers?.get('Nats-Consumer-Stalled') ?? '';
    const isQuestion = message.reply !== undefined && message.reply !== '';
    if (isQuestion) message.respond();
    else if (stalled !== '') this.#connection.publish(stalled);
    const last = headers?.get('Nats-Last-Consumer') ?? '';
    if (last !== '' && Number(last) !== this.#count) this.#lose('a message is missing before a heartbeat');
    // Its heart beats when there is nothing to send. What is pending by its count may have been deleted by hand.
    else if (!isQuestion && stalled === '') this.#catchUp();
  }

  /** All has come that the server has which sends it. */
  #catchUp(): void {
    if (this.#isUpToDate || this.#isAsking || this.#ended) return;
    const { lastAt, nextAt } = this.#options;
    if (this.#at >= lastAt) return this.#becomeUpToDate();
    this.#isAsking = true;
    this.#behind ??= setTimeout(() => this.#lose('the server that sends it is behind'), BEHIND_MS_MAX);
    // What was the newest may have been deleted.
    nextAt(this.#at + 1).then(
      (next) => {
        this.#isAsking = false;
        if (next === null || next > lastAt) this.#becomeUpToDate();
        else if (next <= this.#at) this.#catchUp();
      },
      (error: Error) => this.#lose(error.message),
    );
  }

  #becomeUpToDate(): void {
    if (this.#ended) return;
    clearTimeout(this.#behind);
    this.#isUpToDate = true;
    this.#options.upToDate();
  }

  #lose(reason: string): void {
    if (this.#ended) return;
    this.#end();
    this.#options.lost(reason);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#watchdog);
    clearTimeout(this.#behind);
    this.#subscription.unsubscribe();
    if (this.#consumer === '') return;
    // The server forgets it by itself as well.
    this.#manager.consumers.delete(this.#options.stream, this.#consumer).catch(() => undefined);
  }
}

/** Reads the subject that a delivery would be acknowledged at: `$JS.ACK`, then, in newer servers, domain and account. */
function readDelivery(reply: string): { at: number; count: number; pending: number } | null {
  const tokens = reply.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return null;
  const [at, count, pending] = tokens.length >= 11 ? [7, 8, 10] : [5, 6, 8];
  return { at: Number(tokens[at]), count: Number(tokens[count]), pending: Number(tokens[pending]) };
}

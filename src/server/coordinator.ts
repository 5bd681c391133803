/**
 * The coordinator: answers the edges' questions about streams. What is said of a stream is durable when it is said.
 */

import type { ActivityBatch, ActivityFeed } from '../broker/activity-feed.js';
import type { Directory } from '../broker/directory.js';
import type { Journal } from '../broker/journal.js';
import type { NamedSubscribers } from '../broker/named-subscribers.js';
import type { HandBack, PrefixCursors } from '../broker/prefix-cursors.js';
import { RequestError } from '../errors.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Answer, Question, Questions, Topic } from './messages.js';
import type { Replication } from './replica/replication.js';
import type { SubscriberWriter } from './replica/subscriber-writer.js';
import { type AskEdges, listStreams, readStream } from './stream-reports.js';

type Answers = {
  [T in Topic]: (ask: Questions[T]['ask']) => Questions[T]['answer'] | Promise<Questions[T]['answer']>;
};

export interface CoordinatorParts {
  readonly directory: Directory;
  readonly named: NamedSubscribers;
  readonly prefixCursors: PrefixCursors;
  readonly journal: Journal;
  readonly metrics: Metrics;
  readonly activity: ActivityFeed;
  readonly askEdges: AskEdges;
  /** A token names a key that nobody knows. */
  readonly unknownKey: () => Promise<void>;
  readonly replay: (ask: Questions['replay']['ask']) => Promise<Questions['replay']['answer']>;
  /** Has the last word on streams where the log is shared; null where this broker has it. */
  readonly shared: SharedLog | null;
}

/** What answers questions about streams where brokers share the log, once the log was read. */
export interface SharedLog {
  readonly replication: Replication;
  readonly subscribers: SubscriberWriter;
}

/** How long is waited for a log that cannot commit before nobody knows what will come of it. */
const COMMIT_MS_MAX = 10_000;

export class Coordinator {
  readonly #answers: Answers;
  readonly #activity: ActivityFeed;
  readonly #prefixCursors: PrefixCursors;

  constructor(parts: CoordinatorParts) {
    const { activity, prefixCursors, shared } = parts;
    this.#activity = activity;
    this.#prefixCursors = prefixCursors;
    this.#answers = { ...ownAnswers(parts), ...(shared === null ? {} : sharedAnswers(shared)) };
  }

  /** Takes up what happened at an edge. */
  noted(batch: ActivityBatch): void {
    this.#activity.add(batch);
  }

  /** Takes back the cursor of a subscription by prefix whose connection has ended. */
  handedBack(back: HandBack): void {
    this.#prefixCursors.handBack(back);
  }

  /** Answers a question; what the client did wrong goes back as its error, what we did wrong is thrown. */
  async answer<T extends Topic>({ id, topic, ask }: Question<T>): Promise<Answer> {
    try {
      return { kind: 'answer', id, value: await this.#answers[topic](ask) };
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const { code, detail, extra, headers } = error;
      return { kind: 'answer', id, error: { code, detail, extra, headers } };
    }
  }
}

/** What is answered by what this broker has. */
function ownAnswers(parts: CoordinatorParts): Answers {
  const { directory, named, prefixCursors, journal, metrics, activity, replay, unknownKey, shared } = parts;
  const settle = async (name: string): Promise<void> => {
    const isKnown = (): boolean => directory.find(name) !== null;
    const settling = shared === null ? journal.settled(name) : takenUp(shared, name, isKnown);
    if (settling !== undefined) await within(COMMIT_MS_MAX, settling);
  };
  const settled = async <R>(name: string, result: R): Promise<R> => {
    await settle(name);
    return result;
  };
  return {
    resolve: ({ name, create }) => settled(name, directory.resolve(name, create)),
    put: ({ name, config }) => settled(name, directory.put(name, config)),
    close: ({ name }) => settled(name, directory.close(name)),
    remove: ({ name }) => settled(name, directory.remove(name)),
    putAll: async ({ names, config }) => {
      const refs = names.map((name) => directory.put(name, config).ref);
      await Promise.all(names.map(settle));
      return refs;
    },
    removeAll: async ({ names }) => {
      for (const name of names) directory.remove(name);
    },
    ownStreams: () =>
      Array.from(directory.ownStates(), ({ ref, positions: { closed, head } }) => ({
        ref,
        isClosed: closed,
        head,
      })),
    publish: () => {
      throw new RequestError('log_unavailable', 'edges append by themselves where no log is shared');
    },
    refresh: () => undefined,
    join: ({ name, subscriber, start }) => settled(name, named.join(name, subscriber, start)),
    acknowledge: ({ name, subscriber, cursor }) => settled(name, named.acknowledge(name, subscriber, cursor)),
    forget: ({ name, subscriber }) => settled(name, named.forget(name, subscriber)),
    follow: (ask) => prefixCursors.follow(ask),
    state: async ({ name }) => {
      await settle(name);
      const state = directory.state(name);
      return state === null ? null : { ...state, named: named.list(state) };
    },
    list: (options) => listStreams(parts, options),
    readers: async (ask) => {
      await settle(ask.name);
      return readStream(parts, ask);
    },
    activity: ({ after, limit }) => activity.after(after, limit),
    replay,
    unknownKey,
    metrics: () => metrics.render(),
  };
}

/**
 * Takes up what other brokers have written of a stream. While the log is away, what is known here stands.
 * @throws {RequestError} `log_unavailable`: nothing is known here
 */
async function takenUp({ replication }: SharedLog, name: string, isKnown: () => boolean): Promise<void> {
  try {
    await replication.refresh(name);
  } catch (error) {
    if (!(error instanceof RequestError) || !isKnown()) throw error;
  }
}

/** What is asked of the log where it is shared. */
function sharedAnswers(shared: SharedLog): Partial<Answers> {
  const wait = <T>(promise: Promise<T>): Promise<T> => within(COMMIT_MS_MAX, promise);
  return {
    join: ({ name, subscriber, start }) => wait(shared.subscribers.join(name, subscriber, start)),
    acknowledge: ({ name, subscriber, cursor }) =>
      wait(shared.subscribers.acknowledge(name, subscriber, cursor)),
    forget: ({ name, subscriber }) => wait(shared.subscribers.forget(name, subscriber)),
    resolve: ({ name, create }) => wait(shared.replication.resolve(name, create)),
    put: ({ name, config }) => wait(shared.replication.put(name, config)),
    close: ({ name }) => wait(shared.replication.close(name)),
    remove: ({ name }) => wait(shared.replication.remove(name)),
    putAll: async ({ names, config }) => {
      const made = await wait(Promise.all(names.map((name) => shared.replication.put(name, config))));
      return made.map(({ ref }) => ref);
    },
    removeAll: async ({ names }) => {
      await wait(Promise.all(names.map((name) => shared.replication.remove(name))));
    },
    publish: ({ name, publish }) => shared.replication.publish(name, publish),
    refresh: ({ name, sought }) =>
      shared.replication.refresh(name, (stream) => sought !== null && stream?.hasReached(sought) === true),
  };
}

/** @throws {RequestError} `commit_unknown` when the promise takes longer. */
async function within<T>(ms: number, promise: Promise<T> | T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new RequestError('commit_unknown', undefined, {}, { 'Retry-After': '1' })),
      ms,
    );
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * The coordinator: answers the edges' questions about streams, and lets time pass over the directory.
 */

import type { Directory } from '../broker/directory.js';
import { RequestError } from '../errors.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Answer, Question, Questions, Topic } from './messages.js';

type Answers = {
  [T in Topic]: (ask: Questions[T]['ask']) => Questions[T]['answer'] | Promise<Questions[T]['answer']>;
};

export class Coordinator {
  readonly #answers: Answers;

  constructor(directory: Directory, metrics: Metrics) {
    this.#answers = {
      resolve: ({ name, create }) => directory.resolve(name, create),
      put: ({ name, config }) => directory.put(name, config),
      close: ({ name }) => directory.close(name),
      remove: ({ name }) => directory.remove(name),
      state: ({ name }) => directory.state(name),
      list: (options) => directory.list(options),
      metrics: () => metrics.render(),
    };
  }

  /** Answers a question; what the client did wrong goes back as its error, what we did wrong is thrown. */
  async answer<T extends Topic>({ id, topic, ask }: Question<T>): Promise<Answer> {
    try {
      return { kind: 'answer', id, value: await this.#answers[topic](ask) };
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return { kind: 'answer', id, error: { code: error.code, detail: error.message, extra: error.extra } };
    }
  }
}

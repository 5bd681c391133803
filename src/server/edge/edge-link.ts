/**
 * An edge's line to the coordinator: questions and their answers over the thread's message port.
 */

import { RequestError } from '../../errors.js';
import type { Answer, EdgeMessage, Question, Questions, Topic } from '../messages.js';

/** The edge's end of its line to the coordinator. */
export interface EdgePort {
  postMessage(message: EdgeMessage): void;
}

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

export class EdgeLink {
  readonly #port: EdgePort;
  /** Bounded by the connections: each has at most one question open. */
  readonly #pending = new Map<number, Pending>();
  /** What is asked in this turn of the loop. */
  readonly #publishes: Question<'publish'>[] = [];
  #lastId = 0;

  constructor(port: EdgePort) {
    this.#port = port;
  }

  send(message: EdgeMessage): void {
    this.#port.postMessage(message);
  }

  ask<T extends Topic>(topic: T, ask: Questions[T]['ask']): Promise<Questions[T]['answer']> {
    const id = ++this.#lastId;
    this.send({ kind: 'question', id, topic, ask } satisfies Question<T> as Question);
    return this.#answerTo(id);
  }

  /** As `ask`, in one message with all others of a turn: to wake a thread costs more than what it is told. */
  askToPublish(ask: Questions['publish']['ask']): Promise<Questions['publish']['answer']> {
    const id = ++this.#lastId;
    if (this.#publishes.length === 0) setImmediate(() => this.#sendPublishes());
    this.#publishes.push({ kind: 'question', id, topic: 'publish', ask });
    return this.#answerTo(id);
  }

  answered({ id, value, error }: Answer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error !== undefined)
      pending?.reject(new RequestError(error.code, error.detail, error.extra, error.headers));
    else pending?.resolve(value as never);
  }

  #sendPublishes(): void {
    this.send({ kind: 'publishes', questions: this.#publishes.splice(0) });
  }

  #answerTo<R>(id: number): Promise<R> {
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }
}

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
  #lastId = 0;

  constructor(port: EdgePort) {
    this.#port = port;
  }

  send(message: EdgeMessage): void {
    this.#port.postMessage(message);
  }

  ask<T extends Topic>(topic: T, ask: Questions[T]['ask']): Promise<Questions[T]['answer']> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.send({ kind: 'question', id, topic, ask } satisfies Question<T> as Question);
    });
  }

  answered({ id, value, error }: Answer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error !== undefined)
      pending?.reject(new RequestError(error.code, error.detail, error.extra, error.headers));
    else pending?.resolve(value as never);
  }
}

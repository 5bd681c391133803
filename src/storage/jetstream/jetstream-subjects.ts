/**
 * Subjects of a log in JetStream: `gapless`, the name of the JetStream stream, that of ours, and for what a named subscriber
 * has the name of that, or `@readers`. Dots part the tokens of a subject, and names have them anywhere; no name has an equals sign.
 */

import type { SubscriberKey } from '../replicated-log.js';

export const SUBJECT_PREFIX = 'gapless';
/** Before the name of a stream: neither token has dots in it. */
const TOKENS_BEFORE = 2;

export class JetStreamSubjects {
  readonly #before: string;

  /** @param log name of the JetStream stream. */
  constructor(log: string) {
    this.#before = `${SUBJECT_PREFIX}.${log}`;
  }

  get all(): string {
    return `${this.#before}.>`;
  }

  ofStream(stream: string): string {
    return `${this.#before}.${asToken(stream)}`;
  }

  /** What all named subscribers of a stream have. */
  ofSubscribers(stream: string): string {
    return `${this.ofStream(stream)}.*`;
  }

  ofSubscriber({ stream, subscriber }: SubscriberKey): string {
    return `${this.ofStream(stream)}.${asToken(subscriber)}`;
  }

  /** Whose subject it is: of a stream, or of a named subscriber. */
  read(subject: string): { stream: string; subscriber: string | null } {
    const [stream = '', subscriber] = subject.split('.').slice(TOKENS_BEFORE).map(asName);
    return { stream, subscriber: subscriber ?? null };
  }
}

function asToken(name: string): string {
  return name.replaceAll('.', '=');
}

function asName(token: string): string {
  return token.replaceAll('=', '.');
}

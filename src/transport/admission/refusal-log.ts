/**
 * One line for each refusal, with the number that the client was given and where the stream stood; never what was sent:
 * no credential, no data. Lines are written while the loop waits, so there are only so many in a second.
 */

import type { Principal } from '../../auth/principal.js';
import type { RequestError } from '../../errors.js';
import type { Logger } from '../../log.js';
import type { Activity } from '../console/activity.js';
import { LineLimit } from './line-limit.js';

/** Members of a problem that are safe to write down, and say why. */
const SHOWN = ['reason', 'scope', 'cursor', 'epoch', 'floor', 'head', 'earliest'] as const;

/** What a refusal is about. */
export interface Refused {
  readonly principal: Principal;
  /** Empty where the path has none, or it was not known yet. */
  readonly stream: string;
}

export class RefusalLog {
  readonly #log: Logger;
  readonly #lines: LineLimit;
  readonly #prefix: string;
  readonly #activity: Activity;
  #lastNumber = 0;

  /** @param prefix tells the requests of this edge and this process from others. */
  constructor(log: Logger, now: () => number, prefix: string, activity: Activity) {
    this.#log = log;
    this.#lines = new LineLimit(now, (count) => log.info({ count }, 'refusals not logged'));
    this.#prefix = prefix;
    this.#activity = activity;
  }

  /** @returns the number of the request, for the client to quote. */
  note(refused: Refused, error: RequestError): string {
    const { principal, stream } = refused;
    const request = `${this.#prefix}-${(++this.#lastNumber).toString(36)}`;
    this.#activity.refused(refused, error, request);
    if (!this.#lines.hasRoom) return request;
    const { code, status } = error;
    this.#log.info({ request, code, status, stream, principal: principal.id, ...shownOf(error) }, 'refused');
    return request;
  }

  /** A reader that eviction has passed (contract 4.6). It had its answer long ago, so there is no number. */
  noteOvertaken({ principal, stream }: Refused, refusal: RequestError): void {
    if (!this.#lines.hasRoom) return;
    this.#log.warn({ stream, principal: principal.id, ...shownOf(refusal) }, 'overtaken');
  }
}

function shownOf(error: RequestError): Record<string, unknown> {
  return Object.fromEntries(
    SHOWN.flatMap((member) => (error.extra[member] === undefined ? [] : [[member, error.extra[member]]])),
  );
}

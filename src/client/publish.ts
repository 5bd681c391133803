/**
 * One publish, tried until it is answered. All attempts carry one key, so that whichever of them arrived counts once
 * (contract 3.4).
 */

import { delayMs, retryAfterMs, sleep } from './backoff.js';
import { errorOf, GaplessError } from './client-error.js';
import { type Body, type Connection, streamPath } from './connection.js';
import { isRetryable } from './retryable.js';

/** What can be published: text, bytes, or a value that becomes JSON. */
export type EventData = string | Uint8Array<ArrayBuffer> | object | number | boolean | null;

/** An event to publish, with its type. */
export interface NewEvent {
  readonly data: EventData;
  /** Absent: an untyped event, which readers see as `message`. */
  readonly type?: string | undefined;
}

/** Where events were appended. */
export interface Published {
  readonly epoch: string;
  /** Seqs of the first and the last event. */
  readonly first: number;
  readonly last: number;
  /** Cursor of the last event. */
  readonly cursor: string;
}

/** Where an option says a value, that is what holds without it. */
export interface PublishOptions {
  /** Append only when the newest event is this one, else `head_mismatch` (contract 3.5). */
  readonly ifHead?: string | undefined;
  /** Ends the attempts with its reason. What was sent may have been appended. */
  readonly signal?: AbortSignal | undefined;
  /** Attempts that fail in a way that may pass, before the last error is thrown; 10. */
  readonly attemptsMax?: number | undefined;
  /** Time before the second attempt, milliseconds; 250. Then doubled, up to 30 s. */
  readonly retryMs?: number | undefined;
}

/** What became of a publish. */
export interface Fate {
  /** An attempt had no answer of the broker: the events may be there. */
  isUnknown: boolean;
}

const ATTEMPTS_MAX = 10;
const RETRY_MS = 250;

/**
 * Sends a body until it is answered.
 *
 * @param fate is told what the answer alone does not say.
 * @throws {GaplessError} the refusal; or the last one that may have passed, after `attemptsMax`.
 */
export async function send(
  connection: Connection,
  name: string,
  { body, type, headers }: { body: Body; type: string; headers: Readonly<Record<string, string>> },
  { ifHead, signal, attemptsMax = ATTEMPTS_MAX, retryMs = RETRY_MS }: PublishOptions,
  fate: Fate = { isUnknown: false },
): Promise<Published> {
  const path = streamPath(name);
  const condition: Record<string, string> = ifHead === undefined ? {} : { 'Gapless-If-Head': ifHead };
  for (let failures = 0; ; failures++) {
    let askedMs: number | null = null;
    try {
      const response = await connection.ask(path, {
        method: 'POST',
        headers: { 'Content-Type': type, ...condition, ...headers },
        body,
        signal,
      });
      askedMs = retryAfterMs(response.headers);
      if (response.status !== 200) throw await errorOf(response);
      const { epoch, first, last } = (await readAnswer(response)) as Omit<Published, 'cursor'>;
      return { epoch, first, last, cursor: `${epoch}.${last}` };
    } catch (error) {
      fate.isUnknown ||= !(error instanceof GaplessError) || mayBeThere(error);
      signal?.throwIfAborted();
      if (!(error instanceof GaplessError) || !isRetryable(error) || failures + 1 >= attemptsMax) throw error;
    }
    await sleep(delayMs(failures, retryMs, askedMs, Math.random()), signal);
  }
}

/** Whether the events may be there although this was the answer: there was none, or it is not the broker's. */
function mayBeThere({ code, status }: GaplessError): boolean {
  if (code === 'unexpected_answer') return status === 408 || status >= 500;
  return code === 'unreachable' || code === 'commit_unknown';
}

/** An answer that broke off is as none: the events may have been appended. */
async function readAnswer(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    throw new GaplessError('unreachable', 'the answer broke off', { cause });
  }
}

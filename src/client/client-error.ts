/**
 * What the client throws. Everything else that comes out of it is an abort of the caller's own, or what the caller's
 * code threw.
 */

/** A refusal by the server, as its problem says (contract 8), or one that the client found by itself. */
export class GaplessError extends Error {
  override readonly name: string = 'GaplessError';
  /**
   * A code of contract 8, or one of the client's own: `unreachable` and `unexpected_answer` of a connection,
   * `not_contiguous` and `stream_deleted` of a subscription, `queue_full` and `outcome_unknown` of a publisher,
   * `source_failed` of a token stream.
   */
  readonly code: string;
  /** HTTP status; 0 where there was no answer. */
  readonly status: number;
  /** The whole problem as the server gave it; empty where there was none. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    { status = 0, problem = {}, cause }: { status?: number; problem?: object; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.problem = problem as Record<string, unknown>;
  }
}

/** Whether an error is a refusal with this code. */
export function isRefusal(error: unknown, code: string): error is GaplessError {
  return error instanceof GaplessError && error.code === code;
}

export type UnavailableReason =
  | 'evicted'
  | 'epoch_changed'
  | 'ahead_of_head'
  | 'cursor_unknown'
  | 'malformed';

/**
 * Events after the cursor are gone, or were never there: the stream cannot go on from here (contract 4.4). No event was
 * skipped; what to do is the caller's to decide, for instance to load a snapshot and to follow from `earliest`.
 */
export class ResumeUnavailableError extends GaplessError {
  override readonly name = 'ResumeUnavailableError';
  readonly reason: UnavailableReason;
  /** The cursor that was refused. */
  readonly cursor: string;
  /** Null, like the others, where there is no such stream. */
  readonly epoch: string | null;
  /** Lowest seq that can be read. */
  readonly floor: number | null;
  /** Seq of the newest event. */
  readonly head: number | null;
  /** The first cursor that works. */
  readonly earliest: string | null;
  /** The stream that this is about, where several are followed. */
  readonly stream: string | null;
  /** Of a subscription to several streams, all that cannot go on, each with its own positions. */
  readonly streams: readonly ResumeUnavailableError[];

  constructor(problem: Readonly<Record<string, unknown>>, status: number) {
    const reason = problem['reason'] as UnavailableReason;
    const cursor = String(problem['cursor']);
    const code = reason === 'malformed' ? 'malformed' : 'resume_unavailable';
    const stream = typeof problem['stream'] === 'string' ? problem['stream'] : null;
    const of = stream === null ? '' : `${stream}: `;
    super(code, `${of}cannot resume after ${cursor}: ${EXPLAINED[reason] ?? reason}`, { status, problem });
    const streams = Array.isArray(problem['streams'])
      ? (problem['streams'] as Record<string, unknown>[])
      : [];
    this.stream = stream;
    this.streams = streams.map((each) => new ResumeUnavailableError(each, status));
    this.reason = reason;
    this.cursor = cursor;
    this.epoch = (problem['epoch'] ?? null) as string | null;
    this.floor = (problem['floor'] ?? null) as number | null;
    this.head = (problem['head'] ?? null) as number | null;
    this.earliest = (problem['earliest'] ?? null) as string | null;
  }
}

/**
 * @throws {ResumeUnavailableError} for a cursor that no header can carry. An empty one would be none, and begin at what
 *   comes next.
 */
export function refuseUnsendable(cursor: string | undefined): void {
  if (cursor !== undefined && !/^[\x21-\x7e]+$/.test(cursor))
    throw new ResumeUnavailableError({ reason: 'malformed', cursor }, 0);
}

const EXPLAINED: Readonly<Record<UnavailableReason, string>> = {
  evicted: 'the next event is not kept any more',
  epoch_changed: 'the stream is not the one that the cursor is of',
  ahead_of_head: 'there is no such event yet',
  cursor_unknown: 'the server does not keep it, or not any more',
  malformed: 'it is not a cursor',
};

/** The stream was deleted while it was followed; what had not been delivered is gone (contract 4.7). */
export class StreamDeletedError extends GaplessError {
  override readonly name = 'StreamDeletedError';
  /** The last event that was delivered; null when none was. */
  readonly cursor: string | null;
  /** Which stream, where several are followed. */
  readonly stream: string | null;

  constructor(cursor: string | null, stream: string | null = null) {
    super('stream_deleted', `the stream ${stream === null ? '' : `${stream} `}was deleted`);
    this.cursor = cursor;
    this.stream = stream;
  }
}

/** Other refusals have a reason as well, such as that of a token. */
const UNAVAILABLE_CODES: ReadonlySet<unknown> = new Set(['resume_unavailable', 'malformed']);

/** The error that an answer other than a success stands for. Reads its body. */
export async function errorOf(response: Response): Promise<GaplessError> {
  const { status } = response;
  const problem = await problemOf(response);
  if (problem === null) {
    return new GaplessError('unexpected_answer', `the answer was ${status}`, { status });
  }
  if (UNAVAILABLE_CODES.has(problem['code']) && typeof problem['reason'] === 'string') {
    return new ResumeUnavailableError(problem, status);
  }
  const text = [problem['title'], problem['detail']].filter((part) => typeof part === 'string').join(': ');
  return new GaplessError(String(problem['code']), text, { status, problem });
}

async function problemOf(response: Response): Promise<Record<string, unknown> | null> {
  if (!response.headers.get('content-type')?.startsWith('application/problem+json')) {
    await response.body?.cancel();
    return null;
  }
  const problem: unknown = await response.json().catch(() => null);
  return typeof problem === 'object' ? (problem as Record<string, unknown> | null) : null;
}

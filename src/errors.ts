/** What the error table says about one code. */
export interface ErrorEntry {
  /** HTTP status of the answer. */
  readonly status: number;
  /** The problem's `title`: the same for every occurrence. */
  readonly title: string;
  /** Whether the same request, sent again unchanged, may succeed later. */
  readonly retry: boolean;
  /** One sentence for the documentation: when it happens and what to do. */
  readonly doc: string;
}

/** Every error that a client can be told, alphabetically (contract 8). A code, once published, keeps its meaning. */
export const ERRORS = {
  ack_ahead: {
    status: 400,
    title: 'The cursor is beyond what may be seen',
    retry: false,
    doc: 'A subscriber acknowledges what it has received; the answer carries the head.',
  },
  backpressure: {
    status: 429,
    title: 'The publisher is too fast',
    retry: true,
    doc: 'The stream is full of events that wait for their commit, or for named subscribers; nothing was appended. Try again soon.',
  },
  batch_too_large: {
    status: 413,
    title: 'The batch is too large',
    retry: false,
    doc: 'The batch has more events than the limit, or more bytes than the stream could ever hold; split it.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    retry: false,
    doc: 'The request body is larger than the server accepts, whatever it holds.',
  },
  commit_unknown: {
    status: 503,
    title: 'The commit has not come',
    retry: true,
    doc: 'The events were appended and the log cannot commit them now. They may appear later: look before publishing again.',
  },
  config_conflict: {
    status: 409,
    title: 'The stream exists with another configuration',
    retry: false,
    doc: 'A stream keeps the configuration it was created with; delete it to make it anew.',
  },
  draining: {
    status: 503,
    title: 'The server is shutting down',
    retry: true,
    doc: 'The server takes no new subscriptions while it drains; connect again, to this address or another.',
  },
  empty_batch: {
    status: 400,
    title: 'The batch holds no event',
    retry: false,
    doc: 'A batch must hold at least one event; blank lines do not count.',
  },
  event_too_large: {
    status: 413,
    title: 'The event is too large',
    retry: false,
    doc: 'The data of one event is larger than the limit.',
  },
  forbidden: {
    status: 403,
    title: 'This is not permitted',
    retry: false,
    doc: 'The token or key is good, and does not give the right to do this here; the detail names the right.',
  },
  head_mismatch: {
    status: 412,
    title: 'The head is elsewhere',
    retry: false,
    doc: 'Gapless-If-Head names another position than the head; the answer carries the head.',
  },
  host_not_allowed: {
    status: 403,
    title: 'This server is not called by this name',
    retry: false,
    doc: 'Without keys a server is called by an address, by localhost, by a name without a dot, or by one that it was told of.',
  },
  insufficient_memory: {
    status: 507,
    title: 'No memory for this stream',
    retry: true,
    doc: 'The memory budget is taken and the stream could not be placed; nothing was appended.',
  },
  invalid_body: {
    status: 400,
    title: 'The body cannot be read',
    retry: false,
    doc: 'The body is not what its content type says: malformed JSON or MessagePack, or not of the documented shape.',
  },
  invalid_config: {
    status: 400,
    title: 'The stream configuration is not valid',
    retry: false,
    doc: 'The problems member names every bad field with what was expected.',
  },
  invalid_event_type: {
    status: 400,
    title: 'The event type is not valid',
    retry: false,
    doc: 'An event type is at most 128 bytes of UTF-8 without CR, LF or NUL.',
  },
  invalid_handshake: {
    status: 400,
    title: 'The WebSocket handshake is not valid',
    retry: false,
    doc: 'A WebSocket is opened with version 13, a key, and a subprotocol of those that are supported, or none.',
  },
  invalid_producer: {
    status: 400,
    title: 'The producer is not named as it should be',
    retry: false,
    doc: 'Producer-Id, Producer-Epoch and Producer-Seq come together and without Idempotency-Key; the detail says what is wrong.',
  },
  invalid_query: {
    status: 400,
    title: 'A query parameter is not valid',
    retry: false,
    doc: 'A query parameter is out of range, given twice or unreadable; the detail names it.',
  },
  invalid_stream_name: {
    status: 400,
    title: 'The stream name is not valid',
    retry: false,
    doc: 'A name is 1 to 200 of A-Z a-z 0-9 . _ ~ : - and neither "." nor ".."; nothing is percent-encoded.',
  },
  invalid_utf8: {
    status: 400,
    title: 'The text is not UTF-8',
    retry: false,
    doc: 'Text must be valid UTF-8; publish other bytes as application/octet-stream.',
  },
  keys_unavailable: {
    status: 503,
    title: 'The token cannot be checked',
    retry: true,
    doc: 'The key of the token is not known, and the keys of its issuer cannot be fetched now. Try again soon.',
  },
  log_full: {
    status: 507,
    title: 'The disk is full',
    retry: true,
    doc: 'The durable log has no space; nothing was appended. Reading goes on, and publishing when there is space.',
  },
  log_unavailable: {
    status: 503,
    title: 'The durable log fails',
    retry: true,
    doc: 'The durable log cannot be written to; nothing was appended. Reading goes on where it can.',
  },
  malformed: {
    status: 400,
    title: 'The cursor cannot be read',
    retry: false,
    doc: 'A cursor is "<epoch>.<seq>" as the server gave it, or the word "earliest" or "latest".',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed here',
    retry: false,
    doc: 'The path exists, but not with this method; Allow lists those that it has.',
  },
  not_acceptable: {
    status: 406,
    title: 'None of the accepted types is available',
    retry: false,
    doc: 'Accept names no representation that this path has.',
  },
  not_found: {
    status: 404,
    title: 'There is nothing at this path',
    retry: false,
    doc: 'The path is not part of the interface.',
  },
  origin_not_allowed: {
    status: 403,
    title: 'Pages of this origin may not connect',
    retry: false,
    doc: 'A page may open a WebSocket from the origins that the server was told of, and from its own; call an MCP server from those, and from the loopback.',
  },
  overloaded: {
    status: 503,
    title: 'The server is overloaded',
    retry: true,
    doc: 'The server is behind: it takes no replays, or no new subscriptions, until it has caught up. Try again later.',
  },
  producer_fenced: {
    status: 403,
    title: 'A newer epoch of the producer has begun',
    retry: false,
    doc: 'Somebody else publishes as this producer in a newer epoch, which the answer names; nothing was appended. Stop, or begin an epoch above it.',
  },
  producer_gap: {
    status: 409,
    title: 'Others of the producer have to come first',
    retry: false,
    doc: 'The publish is not the next of its producer; nothing was appended. Expected is the Producer-Seq that is.',
  },
  publish_forgotten: {
    status: 409,
    title: 'The publish was appended before',
    retry: false,
    doc: 'It was appended by an earlier request, and too many of its producer followed to say where. It is not appended again.',
  },
  rate_limited: {
    status: 429,
    title: 'The publisher is over its rate',
    retry: true,
    doc: 'The token subject, key or address has published more than its rate allows; nothing was appended. Try again soon.',
  },
  replay_limited: {
    status: 429,
    title: 'This address resumes too much',
    retry: true,
    doc: 'Clients of this address were behind by more than its budget of a minute. Come back later, with the same cursor.',
  },
  reserved_type: {
    status: 400,
    title: 'The event type is reserved',
    retry: false,
    doc: 'The types stream_closed, stream_deleted and resume_unavailable are said by the server only.',
  },
  resume_unavailable: {
    status: 410,
    title: 'The stream cannot be resumed from this cursor',
    retry: false,
    doc: 'Events after the cursor are gone or were never here; reason says which, earliest is where reading can start.',
  },
  stream_closed: {
    status: 409,
    title: 'The stream is closed',
    retry: false,
    doc: 'Nothing more can be appended to a closed stream; reading goes on until its time to live ends.',
  },
  stream_not_found: {
    status: 404,
    title: 'There is no such stream',
    retry: false,
    doc: 'The stream does not exist, and this request or this server does not create it.',
  },
  subscriber_not_found: {
    status: 404,
    title: 'There is no such subscriber',
    retry: false,
    doc: 'The stream has no subscriber of this name; one is made by subscribing under it.',
  },
  too_many_connections: {
    status: 503,
    title: 'The server has too many connections',
    retry: true,
    doc: 'The limit of connections in use is reached; try again later or elsewhere.',
  },
  too_many_messages: {
    status: 429,
    title: 'Too many messages wait for their answers',
    retry: true,
    doc: 'A WebSocket has sent more messages than it has been answered; wait for answers.',
  },
  too_many_producers: {
    status: 507,
    title: 'The server remembers too many producers',
    retry: true,
    doc: 'No further producer or key can be remembered until older ones are forgotten; nothing was appended.',
  },
  too_many_streams: {
    status: 507,
    title: 'The server has too many streams',
    retry: true,
    doc: 'The limit of streams is reached; nothing was created.',
  },
  too_many_subscribers: {
    status: 507,
    title: 'There are too many named subscribers',
    retry: true,
    doc: 'The limit of named subscribers is reached, of the stream or in all; forget some, or subscribe without a name.',
  },
  too_many_subscriptions: {
    status: 503,
    title: 'There are too many subscriptions',
    retry: true,
    doc: 'A limit of subscriptions is reached: of the server, the stream or the address, as scope says. Try again later.',
  },
  unauthorized: {
    status: 401,
    title: 'Who you are is not known',
    retry: false,
    doc: 'The token or key is missing or not accepted; reason says why, such as expired, signature or audience.',
  },
  unsupported_type: {
    status: 415,
    title: 'The content type is not supported',
    retry: false,
    doc: 'Content-Type, or its charset, is none that this path reads; text is always UTF-8.',
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/**
 * A request that cannot be answered as asked; nothing was changed. Becomes an `application/problem+json` answer
 * (RFC 9457, contract 8). Without a stack, which nobody reads and takes V8 ten times as long as all the rest.
 */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: ErrorCode;
  readonly status: number;
  /** Further members of the problem, such as `reason` and `earliest` of a refused resume. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** Further headers of the answer, such as `Allow`. */
  readonly headers: Readonly<Record<string, string>>;
  /** What it was this time; undefined where the title says it all. */
  readonly detail: string | undefined;

  constructor(
    code: ErrorCode,
    detail?: string,
    extra: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(detail ?? ERRORS[code].title);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.status = ERRORS[code].status;
    this.extra = extra;
    this.headers = headers;
    this.detail = detail;
  }

  /** The answer's body: `{type, title, status, code, detail?, ...extra}`. */
  problem(): Record<string, unknown> {
    return {
      type: `urn:gapless:error:${this.code}`,
      title: ERRORS[this.code].title,
      status: this.status,
      code: this.code,
      ...(this.detail === undefined ? {} : { detail: this.detail }),
      ...this.extra,
    };
  }
}

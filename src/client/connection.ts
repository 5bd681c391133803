import { abortable } from './abortable.js';
import { TIMER_MS_MAX } from './backoff.js';
import { GaplessError } from './client-error.js';

/**
 * A token, or what gives one: asked again whenever the server did not take the last. If it throws, that counts as a broker
 * that cannot be reached: it is asked again where that would be tried again.
 */
export type Token = string | (() => string | Promise<string>);

export interface ConnectionOptions {
  /** Where the broker is: `https://events.example.com`, with a path in front of `/v1` if a proxy has one. */
  readonly url: string | URL;
  /** Bearer token (contract 9.1). */
  readonly token?: Token | undefined;
  /** Stands in for the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Time for a whole answer, when it is not an event stream, before it counts as none, milliseconds; 30 s. */
  readonly answerTimeoutMs?: number | undefined;
}

/** More than the 10 s after which a broker gives up waiting for its log (contract 3.1). */
const ANSWER_TIMEOUT_MS = 30_000;

/** What every `fetch` sends as it is. */
export type Body = string | Uint8Array<ArrayBuffer>;

export interface RequestOptions {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** A list is a parameter that is given several times. */
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
  readonly signal?: AbortSignal | undefined;
}

/** The way to one broker. Holds no state but the last token. */
export class Connection {
  readonly #base: string;
  readonly #token: Token | undefined;
  readonly #fetch: typeof fetch;
  readonly #answerTimeoutMs: number;
  #lastToken: string | null = null;

  constructor({
    url,
    token,
    fetch = globalThis.fetch,
    answerTimeoutMs = ANSWER_TIMEOUT_MS,
  }: ConnectionOptions) {
    this.#base = baseOf(url);
    this.#token = token;
    this.#answerTimeoutMs = answerTimeoutMs;
    // Browsers refuse to call it as a method of something else.
    this.#fetch = fetch.bind(globalThis);
  }

  /**
   * One request, whatever its answer. A token that is not taken is asked for again, once.
   * @throws {GaplessError} `unreachable` when no answer came; the signal's reason when it was aborted.
   */
  async request(path: string, options: RequestOptions = {}): Promise<Response> {
    const response = await this.#send(path, options);
    if (response.status !== 401 || typeof this.#token !== 'function') return response;
    await response.body?.cancel();
    this.#lastToken = null;
    return this.#send(path, options);
  }

  /**
   * One request with its whole answer, within a limit of time: a `fetch` whose connection is closed before it was sent may
   * never end by itself (Node 20).
   * @throws {GaplessError} `unreachable` when no whole answer came; the signal's reason when it was aborted.
   */
  async ask(path: string, options: RequestOptions = {}): Promise<Response> {
    const { signal } = options;
    signal?.throwIfAborted();
    const ending = new AbortController();
    const passOn = (): void => ending.abort(signal?.reason);
    signal?.addEventListener('abort', passOn);
    const late = new GaplessError('unreachable', `no answer in ${this.#answerTimeoutMs} ms`);
    const timer = setTimeout(() => ending.abort(late), Math.min(this.#answerTimeoutMs, TIMER_MS_MAX));
    try {
      const response = await this.request(path, { ...options, signal: ending.signal });
      const { status, headers } = response;
      const body = await response.arrayBuffer();
      return new Response(body.byteLength === 0 ? null : body, { status, headers });
    } catch (cause) {
      ending.signal.throwIfAborted();
      if (cause instanceof GaplessError) throw cause;
      throw new GaplessError('unreachable', 'the answer broke off', { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', passOn);
    }
  }

  async #send(path: string, { query = {}, headers, ...rest }: RequestOptions): Promise<Response> {
    const given = Object.entries(query).flatMap(([name, value = []]) =>
      (typeof value === 'string' ? [value] : value).map((one): [string, string] => [name, one]),
    );
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
    const authorization = await abortable(this.#authorization(), rest.signal);
    // Not within the `try`: headers that cannot be sent do not mean that the broker cannot be reached.
    const all = new Headers({ ...headers, ...authorization });
    try {
      return await this.#fetch(`${this.#base}${path}${search}`, {
        ...rest,
        signal: rest.signal ?? null,
        headers: all,
      });
    } catch (cause) {
      rest.signal?.throwIfAborted();
      throw new GaplessError('unreachable', `no answer from ${this.#base}`, { cause });
    }
  }

  async #authorization(): Promise<Record<string, string>> {
    if (this.#token === undefined) return {};
    try {
      this.#lastToken ??= typeof this.#token === 'string' ? this.#token : await this.#token();
    } catch (cause) {
      throw new GaplessError('unreachable', 'there is no token to ask with', { cause });
    }
    const token = this.#lastToken.trim();
    // As the server would answer it, if it could be sent.
    if (!/^[\x20-\x7e]*$/.test(token))
      throw new GaplessError('unauthorized', 'the token has characters that no token has', {
        status: 401,
        problem: { reason: 'malformed' },
      });
    return { Authorization: `Bearer ${token}` };
  }
}

/**
 * The URL that all paths are appended to. In a page it may be a path itself.
 * @throws {TypeError} for what no request could be sent to, or would be sent elsewhere.
 */
function baseOf(url: string | URL): string {
  const base = String(url).replace(/\/+$/, '');
  const page = (globalThis as { location?: { href?: string } }).location?.href;
  // The messages say what is wrong, and do not quote the URL: there may be a password in it.
  if (!URL.canParse(`${base}/`, page)) throw new TypeError('the url of a broker is http://… or https://…');
  const { protocol, username, password, search, hash } = new URL(`${base}/`, page);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new TypeError(`the url of a broker is http://… or https://…, and not ${protocol}`);
  if (username !== '' || password !== '') throw new TypeError('a url has no user in it; see token');
  if (search !== '' || hash !== '') throw new TypeError('the url of a broker ends with its path');
  return base;
}

/** The path of a stream (contract 2.4): its name is put there as it is, for nothing in it may be encoded. */
export function streamPath(name: string): string {
  if (/^[A-Za-z0-9._~:-]{1,200}$/.test(name) && name !== '.' && name !== '..') return `/v1/streams/${name}`;
  throw new GaplessError('invalid_stream_name', `"${name}" is not the name of a stream`);
}

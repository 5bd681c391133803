import { GaplessError } from './client-error.js';

/** A token, or what gives one: asked again whenever the server did not take the last. */
export type Token = string | (() => string | Promise<string>);

export interface ConnectionOptions {
  /** Where the broker is: `https://events.example.com`, with a path in front of `/v1` if a proxy has one. */
  readonly url: string | URL;
  /** Bearer token (contract 9.1). */
  readonly token?: Token | undefined;
  /** Stands in for the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

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
  #lastToken: string | null = null;

  constructor({ url, token, fetch = globalThis.fetch }: ConnectionOptions) {
    this.#base = String(url).replace(/\/+$/, '');
    this.#token = token;
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

  async #send(path: string, { query = {}, headers, ...rest }: RequestOptions): Promise<Response> {
    const given = Object.entries(query).flatMap(([name, value = []]) =>
      (typeof value === 'string' ? [value] : value).map((one): [string, string] => [name, one]),
    );
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
    const authorization = await this.#authorization();
    try {
      return await this.#fetch(`${this.#base}${path}${search}`, {
        ...rest,
        signal: rest.signal ?? null,
        headers: { ...headers, ...authorization },
      });
    } catch (cause) {
      rest.signal?.throwIfAborted();
      throw new GaplessError('unreachable', `no answer from ${this.#base}`, { cause });
    }
  }

  async #authorization(): Promise<Record<string, string>> {
    if (this.#token === undefined) return {};
    this.#lastToken ??= typeof this.#token === 'string' ? this.#token : await this.#token();
    return { Authorization: `Bearer ${this.#lastToken}` };
  }
}

/** The path of a stream (contract 2.4): its name is put there as it is, for nothing in it may be encoded. */
export function streamPath(name: string): string {
  if (/^[A-Za-z0-9._~:-]{1,200}$/.test(name) && name !== '.' && name !== '..') return `/v1/streams/${name}`;
  throw new GaplessError('invalid_stream_name', `"${name}" is not the name of a stream`);
}

/**
 * Who sends a request, and whether they may do what it asks (contract 9.1). The one place where a request becomes a
 * principal; routes hand it the right that they need.
 *
 * Hot path: a credential that was seen lately costs a header and a look into a map. One that was not is verified off the
 * loop, and its handler runs after that, on a copy of the request.
 */

import type { HttpRequest } from 'uWebSockets.js';
import type { Authenticated, Authenticator, AuthFault } from '../../auth/authenticator.js';
import type { KeyMaterial } from '../../auth/key-material.js';
import { ANYBODY, type Principal } from '../../auth/principal.js';
import { allows, type Right } from '../../core/grant.js';
import { RequestError } from '../../errors.js';
import { Counter, type Counters } from '../../ring/counters.js';
import type { Exchange } from '../http/exchange.js';
import { Query } from '../http/query.js';
import { keepRequest, type RequestView } from '../http/request-view.js';
import type { HostNames } from './host-names.js';

/** Handles a request to the stream of this name, empty where the path has none, of somebody who may. */
export type Handler = (exchange: Exchange, name: string, req: RequestView) => Promise<void> | void;

/** As nearly all write it; any case will do (RFC 9110, 11.1). */
const BEARER = 'Bearer ';
const RETRY_AFTER_SECONDS = '5';
/** The library takes a request of half a megabyte, if it comes at once; remembering such a credential would not be bounded. */
const CREDENTIAL_LENGTH_MAX = 8192;

export class Access {
  /** Null: nobody has to authenticate. */
  readonly #authenticator: Authenticator | null;
  readonly #hosts: HostNames;
  readonly #tokenInQuery: boolean;
  readonly #counters: Counters;

  constructor(options: {
    authenticator: Authenticator | null;
    hosts: HostNames;
    tokenInQuery: boolean;
    counters: Counters;
  }) {
    this.#authenticator = options.authenticator;
    this.#hosts = options.hosts;
    this.#tokenInQuery = options.tokenInQuery;
    this.#counters = options.counters;
  }

  /** Takes other keys. @returns the names of the keys that count now. */
  useKeys(keys: KeyMaterial): ReadonlySet<string> {
    return this.#authenticator?.replaceKeys(keys) ?? new Set();
  }

  /**
   * Runs the handler if whoever sent the request has the right to the stream, now or when that is known.
   * @throws {RequestError} `unauthorized`, `forbidden`, `invalid_query`, `host_not_allowed` or `keys_unavailable`, or
   * rejects with it
   */
  guard(
    exchange: Exchange,
    req: HttpRequest,
    right: Right,
    name: string,
    handler: Handler,
  ): Promise<void> | void {
    exchange.stream = name;
    this.#hosts.check(req);
    const authenticator = this.#authenticator;
    if (authenticator === null) return handler(exchange, name, req);
    const credential = this.#credentialOf(req);
    const known = authenticator.known(credential);
    if (known === null) {
      const authenticating = authenticator.authenticate(credential);
      return this.#handleLater(authenticating, exchange, keepRequest(req), right, name, handler);
    }
    this.#admit(exchange, this.#principalOf(known), right, name);
    return handler(exchange, name, req);
  }

  /** As `guard`, of a request about several streams: to each of them the right is needed. */
  guardAll(
    exchange: Exchange,
    req: HttpRequest,
    right: Right,
    [first = '', ...others]: readonly string[],
    handler: (req: RequestView) => Promise<void> | void,
  ): Promise<void> | void {
    return this.guard(exchange, req, right, first, (_exchange, _name, request) => {
      for (const name of others) this.#admit(exchange, exchange.principal, right, name);
      return handler(request);
    });
  }

  /**
   * Reads the credential of a request whose answer is no response.
   * @returns finds out who sent it, then or later; rejects with a RequestError, `unauthorized` or `keys_unavailable`.
   * @throws {RequestError} `host_not_allowed`
   */
  identify(req: HttpRequest): () => Promise<Principal> {
    this.#hosts.check(req);
    const authenticator = this.#authenticator;
    if (authenticator === null) return async () => ANYBODY;
    let credential: string;
    try {
      credential = this.#credentialOf(req);
    } catch (error) {
      return () => Promise.reject(error);
    }
    return async () =>
      this.#principalOf(authenticator.known(credential) ?? (await authenticator.authenticate(credential)));
  }

  /** @throws {RequestError} `forbidden` */
  require(principal: Principal, right: Right, name: string): void {
    if (allows(principal.grant, right, name)) return;
    this.#counters.add(Counter.requestsForbidden, 1);
    throw new RequestError('forbidden', `the right to ${right} is missing`);
  }

  async #handleLater(
    authenticating: Promise<Authenticated>,
    exchange: Exchange,
    req: RequestView,
    right: Right,
    name: string,
    handler: Handler,
  ): Promise<void> {
    exchange.watch();
    if (req.getMethod() === 'post' || req.getMethod() === 'put') exchange.holdBody();
    const principal = this.#principalOf(await authenticating);
    if (exchange.done) return;
    this.#admit(exchange, principal, right, name);
    await handler(exchange, name, req);
  }

  /** @throws {RequestError} `unauthorized` or `keys_unavailable` */
  #principalOf(authenticated: Authenticated): Principal {
    if (authenticated.outcome === 'refused') throw this.#refusal(authenticated.fault);
    return authenticated.principal;
  }

  #admit(exchange: Exchange, principal: Principal, right: Right, name: string): void {
    exchange.principal = principal;
    this.require(principal, right, name);
  }

  /** The token or key as it was sent. The header wins: what stands in a URL is there because a header could not be. */
  #credentialOf(req: HttpRequest): string {
    const credential = this.#sentCredential(req);
    if (credential.length > CREDENTIAL_LENGTH_MAX) throw this.#refusal('malformed');
    return credential;
  }

  #sentCredential(req: HttpRequest): string {
    const header = req.getHeader('authorization');
    if (header !== '') {
      if (
        !header.startsWith(BEARER) &&
        header.slice(0, BEARER.length).toLowerCase() !== BEARER.toLowerCase()
      ) {
        throw this.#refusal('scheme');
      }
      return header.slice(BEARER.length).trim();
    }
    const query = this.#tokenInQuery ? new Query(req.getQuery()).get('access_token') : undefined;
    if (query === undefined || query === '') throw this.#refusal('missing');
    return query;
  }

  #refusal(fault: AuthFault | 'missing' | 'scheme'): RequestError {
    if (fault === 'keys_unavailable') {
      return new RequestError('keys_unavailable', undefined, {}, { 'Retry-After': RETRY_AFTER_SECONDS });
    }
    this.#counters.add(Counter.requestsUnauthorized, 1);
    // RFC 6750, 3.1: who sent nothing is told how, and not what is wrong with it.
    const challenge =
      fault === 'missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${fault}"`;
    return new RequestError('unauthorized', undefined, { reason: fault }, { 'WWW-Authenticate': challenge });
  }
}

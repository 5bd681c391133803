/**
 * From the credential of a request to who sent it. What was verified is remembered for a while, so that a publisher who
 * sends the same token with each request costs a look into a map; the rest is off the hot path. So is what was refused:
 * clients whose token has expired come over and over.
 */

import { createHash } from 'node:crypto';
import type { ApiKey, KeyMaterial } from './key-material.js';
import type { Principal } from './principal.js';
import { RecentResults } from './recent-results.js';
import { type TokenFault, type TokenRules, TokenVerifier, type Verified } from './token-verifier.js';

/** Static keys begin so, that they are told from tokens, and found by those who scan for leaked secrets. */
export const API_KEY_PREFIX = 'gpl_';

/** How long a result is believed: a key that is taken away counts no longer than that. */
const REMEMBERED_MS = 60_000;
/** Credentials remembered. They are below 8 KiB each, so this is below 32 MiB. */
const ACCEPTED_MAX = 4096;
/** And of those that were refused, apart from the others: whoever sends many bad ones has nobody's good one forgotten. */
const REFUSED_MAX = 1024;
/** What is wrong with a credential for as long as the keys are the same. */
const LASTING_FAULTS: ReadonlySet<AuthFault> = new Set([
  'malformed',
  'signature',
  'expired',
  'issuer',
  'audience',
  'claims',
]);
/** Signatures checked at a time: a flood of forged tokens must not take the thread pool from the log. */
const VERIFYING_MAX = 4;

export type AuthFault = TokenFault | 'unknown_api_key' | 'keys_unavailable';

export type Authenticated =
  | { readonly outcome: 'accepted'; readonly principal: Principal }
  | { readonly outcome: 'refused'; readonly fault: AuthFault };

export interface AuthenticatorOptions {
  readonly keys: KeyMaterial;
  readonly rules: TokenRules;
  /** Unix time, milliseconds. */
  readonly now: () => number;
  /**
   * Has the keys fetched again, because a token names one that is not here; settles when `replaceKeys` was called with
   * what came of it. Bounded by whoever does it.
   */
  readonly refresh: () => Promise<void>;
}

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #accepted = new RecentResults<Authenticated>(ACCEPTED_MAX);
  readonly #refused = new RecentResults<Authenticated>(REFUSED_MAX);
  /** Bounded by the connections: each has at most one request that waits. */
  readonly #verifying = new Map<string, Promise<Authenticated>>();
  readonly #turns = new Turns(VERIFYING_MAX);
  #keys: KeyMaterial;
  #apiKeys: ReadonlyMap<string, ApiKey>;
  #verifier: TokenVerifier;
  #refreshing: Promise<void> | null = null;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#keys = options.keys;
    this.#apiKeys = byHash(options.keys.apiKeys);
    this.#verifier = new TokenVerifier(options.keys.tokenKeys, options.rules);
  }

  /** Hot path. Who sent this credential, if that was found out lately; null says nothing. */
  known(credential: string): Authenticated | null {
    const nowMs = this.#options.now();
    return this.#accepted.get(credential, nowMs) ?? this.#refused.get(credential, nowMs);
  }

  /** Finds out who sent a credential; those who send the same at the same time share the work. */
  authenticate(credential: string): Promise<Authenticated> {
    let result = this.#verifying.get(credential);
    if (result === undefined) {
      result = this.#find(credential).finally(() => this.#verifying.delete(credential));
      this.#verifying.set(credential, result);
    }
    return result;
  }

  /** Takes other keys, and believes nothing that the old ones said. @returns the names of the keys that count now. */
  replaceKeys(keys: KeyMaterial): ReadonlySet<string> {
    this.#keys = keys;
    this.#apiKeys = byHash(keys.apiKeys);
    this.#verifier = new TokenVerifier(keys.tokenKeys, this.#options.rules);
    this.#accepted.clear();
    this.#refused.clear();
    return new Set([...this.#verifier.keyNames, ...keys.apiKeys.map(apiKeyName)]);
  }

  async #find(credential: string): Promise<Authenticated> {
    const verifier = this.#verifier;
    const result = credential.startsWith(API_KEY_PREFIX)
      ? this.#findApiKey(credential)
      : await this.#verify(credential);
    // What was found out with keys that were replaced meanwhile holds for this request, and is not remembered.
    if (verifier === this.#verifier) this.#remember(credential, result);
    return result;
  }

  #findApiKey(credential: string): Authenticated {
    const sha256 = createHash('sha256').update(credential).digest('hex');
    // Looking up a hash takes a time that tells nothing about the key.
    const key = this.#apiKeys.get(sha256);
    if (key === undefined) return { outcome: 'refused', fault: 'unknown_api_key' };
    const { id, grant } = key;
    const principal = { id, grant, expiresAtMs: Number.POSITIVE_INFINITY, keyName: apiKeyName(key) };
    return { outcome: 'accepted', principal };
  }

  async #verify(token: string): Promise<Authenticated> {
    let verified = await this.#verifyInTurn(token);
    if (verified.outcome === 'refused' && verified.fault === 'unknown_key') {
      await this.#refresh();
      verified = await this.#verifyInTurn(token);
      if (verified.outcome === 'refused' && verified.fault === 'unknown_key' && !this.#keys.isComplete) {
        return { outcome: 'refused', fault: 'keys_unavailable' };
      }
    }
    return verified;
  }

  async #verifyInTurn(token: string): Promise<Verified> {
    await this.#turns.take();
    try {
      return await this.#verifier.verify(token);
    } finally {
      this.#turns.give();
    }
  }

  /** One question at a time, however many tokens name a key that is not here. */
  #refresh(): Promise<void> {
    this.#refreshing ??= this.#options.refresh().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  #remember(credential: string, result: Authenticated): void {
    const untilMs = this.#options.now() + REMEMBERED_MS;
    if (result.outcome === 'accepted') {
      this.#accepted.put(credential, result, Math.min(untilMs, result.principal.expiresAtMs));
    } else if (LASTING_FAULTS.has(result.fault)) {
      this.#refused.put(credential, result, untilMs);
    }
  }
}

/** So many at a time, the others in the order in which they came. */
class Turns {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(free: number) {
    this.#free = free;
  }

  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

function byHash(keys: readonly ApiKey[]): ReadonlyMap<string, ApiKey> {
  return new Map(keys.map((key) => [key.sha256, key]));
}

/** With the rights in it: a key that may do less than before is another one. */
function apiKeyName(key: ApiKey): string {
  return `api:${JSON.stringify(key)}`;
}

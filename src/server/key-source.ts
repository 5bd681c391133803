/**
 * Where the keys come from that callers are checked against (contract 9.1): files of the operator, and a key set that
 * the issuer of the tokens publishes. The main thread has them; the edges get copies.
 */

import { readFile } from 'node:fs/promises';
import {
  type ApiKey,
  type KeyMaterial,
  readApiKeys,
  readFetchedKeySet,
  readKeySet,
  type TokenKey,
} from '../auth/key-material.js';
import type { Config } from '../config/schema.js';
import type { Logger } from '../log.js';

const REFRESH_MS = 5 * 60_000;
/** Fetches for unknown keys within `REFRESH_MS`: whoever sends tokens with made-up keys must not make us fetch at will. */
const ASKED_REFRESHES_MAX = 5;
/** How long fetched keys count when they cannot be fetched again: the issuer may be down, but not for ever. */
const STALE_MS_MAX = 60 * 60_000;
const FETCH_MS_MAX = 5000;
const FETCHED_BYTES_MAX = 1024 * 1024;

type KeyConfig = Pick<Config, 'jwtKeysFile' | 'jwksUrl' | 'apiKeysFile'>;

export class KeySource {
  readonly #config: KeyConfig;
  readonly #log: Logger;
  readonly #changed: (keys: KeyMaterial) => void;
  readonly #refreshing: NodeJS.Timeout | null;
  #fileKeys: readonly TokenKey[] = [];
  #apiKeys: readonly ApiKey[] = [];
  /** Null: never fetched, or too long ago. */
  #fetchedKeys: readonly TokenKey[] | null = null;
  /** By a clock that nobody sets: `performance.now`. */
  #fetchedAtMs = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | null = null;
  #askedRefreshes = 0;

  private constructor(config: KeyConfig, log: Logger, changed: (keys: KeyMaterial) => void) {
    this.#config = config;
    this.#log = log;
    this.#changed = changed;
    this.#refreshing = config.jwksUrl === '' ? null : setInterval(() => void this.#refresh(), REFRESH_MS);
  }

  /**
   * Reads and fetches the keys. A key set that cannot be fetched now is waited for later.
   * @param changed called when there are other keys than before.
   * @returns null where no keys are configured.
   * @throws Error that says which file is wrong.
   */
  static async open(
    config: KeyConfig,
    log: Logger,
    changed: (keys: KeyMaterial) => void,
  ): Promise<KeySource | null> {
    if (config.jwtKeysFile === null && config.jwksUrl === '' && config.apiKeysFile === null) return null;
    const source = new KeySource(config, log, changed);
    try {
      await source.#readFiles();
    } catch (error) {
      source.close();
      throw error;
    }
    await source.#fetchOnce();
    return source;
  }

  get keys(): KeyMaterial {
    return {
      tokenKeys: [...this.#fileKeys, ...(this.#fetchedKeys ?? [])],
      apiKeys: this.#apiKeys,
      isComplete: this.#config.jwksUrl === '' || this.#fetchedKeys !== null,
    };
  }

  /** Reads the files again, and fetches. @throws Error that says which file is wrong; the keys stay as they were. */
  async reload(): Promise<void> {
    await this.#readFiles();
    await this.#fetchOnce();
    this.#changed(this.keys);
  }

  /** A token names a key that is not here: fetches, unless that was asked for too often. */
  async unknownKey(): Promise<void> {
    if (this.#config.jwksUrl === '') return;
    if (this.#fetching === null && this.#askedRefreshes >= ASKED_REFRESHES_MAX) return;
    if (this.#fetching === null) this.#askedRefreshes++;
    await this.#fetchAndTell();
  }

  close(): void {
    if (this.#refreshing !== null) clearInterval(this.#refreshing);
  }

  async #refresh(): Promise<void> {
    this.#askedRefreshes = 0;
    await this.#fetchAndTell();
  }

  async #fetchAndTell(): Promise<void> {
    const before = JSON.stringify(this.keys);
    await this.#fetchOnce();
    if (JSON.stringify(this.keys) !== before) this.#changed(this.keys);
  }

  async #readFiles(): Promise<void> {
    const { jwtKeysFile, apiKeysFile } = this.#config;
    const fileKeys = jwtKeysFile === null ? [] : await readWith(jwtKeysFile, readKeySet);
    this.#apiKeys = apiKeysFile === null ? [] : await readWith(apiKeysFile, readApiKeys);
    this.#fileKeys = fileKeys;
  }

  /** Callers that come while a fetch is under way share it. */
  #fetchOnce(): Promise<void> {
    if (this.#config.jwksUrl === '') return Promise.resolve();
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  async #fetch(): Promise<void> {
    try {
      this.#fetchedKeys = readFetchedKeySet(await fetchText(this.#config.jwksUrl));
      this.#fetchedAtMs = performance.now();
    } catch (error) {
      const isStale = performance.now() - this.#fetchedAtMs > STALE_MS_MAX;
      if (isStale) this.#fetchedKeys = null;
      this.#log.warn({ reason: reasonOf(error), keysHeld: !isStale }, 'key set cannot be fetched');
    }
  }
}

async function readWith<T>(path: string, read: (text: string) => T): Promise<T> {
  try {
    return read(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`);
  }
}

/** Redirects are not followed: they would let the server behind the URL choose another one to believe. */
async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(FETCH_MS_MAX) });
  if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > FETCHED_BYTES_MAX) throw new Error(`more than ${FETCHED_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** What went wrong, without the URL, which may have a secret in it. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string } };
  return cause?.code ?? message;
}

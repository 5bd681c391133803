/**
 * Query parameters, strictly: one that is given twice, or cannot be decoded, is an error and not a guess.
 * Those that nobody asks for are left alone.
 */

import { RequestError } from '../../errors.js';

export class Query {
  readonly #values = new Map<string, string>();
  /** Of those that may be given more than once. */
  readonly #all: ReadonlyMap<string, string[]>;

  /**
   * @param query what stands after the question mark; undefined when there is none.
   * @param repeated parameters that may be given more than once.
   * @throws {RequestError} `invalid_query`
   */
  constructor(query: string | undefined, repeated: readonly string[] = []) {
    this.#all = new Map(repeated.map((name) => [name, []]));
    if (query === undefined) return;
    for (const pair of query.split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const name = decode(equals < 0 ? pair : pair.slice(0, equals));
      const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
      const all = this.#all.get(name);
      if (all !== undefined) all.push(value);
      else if (this.#values.has(name)) throw new RequestError('invalid_query', `${name} is given twice`);
      else this.#values.set(name, value);
    }
  }

  /** The values of a parameter that may be given more than once, in order. */
  all(name: string): readonly string[] {
    return this.#all.get(name) ?? [];
  }

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  /** A word for yes or no; absent is no. */
  flag(name: string): boolean {
    const text = this.#values.get(name) ?? 'false';
    if (text !== 'true' && text !== 'false') {
      throw new RequestError('invalid_query', `${name}: expected "true" or "false"`);
    }
    return text === 'true';
  }

  /** A whole number from `min` up; above `max` it is lowered to that. */
  count(name: string, bounds: { min: number; max: number; absent: number }): number {
    const text = this.#values.get(name);
    if (text === undefined) return bounds.absent;
    if (!/^[0-9]{1,15}$/.test(text) || Number(text) < bounds.min) {
      throw new RequestError('invalid_query', `${name}: expected a whole number from ${bounds.min}`);
    }
    return Math.min(Number(text), bounds.max);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new RequestError('invalid_query', 'a parameter is not valid percent-encoded UTF-8');
  }
}

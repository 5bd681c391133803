import { RequestError } from '../errors.js';

/**
 * What a stream keeps (contract 2.1): at least the newest `events`, `bytes` and `ageMs` milliseconds, and not above
 * twice that. 0 means no such limit.
 */
export interface Retention {
  readonly events: number;
  readonly bytes: number;
  readonly ageMs: number;
}

/** The configuration that a stream is created with and keeps (contract 2.1). */
export interface StreamConfig {
  readonly retention: Retention;
  /** What a publish does to events that a named subscriber has not acknowledged (contract 3.6). */
  readonly overflow: 'evict' | 'reject';
  /** How long a stream lives once nobody uses it, in milliseconds; 0 is for ever. */
  readonly ttlMs: number;
}

/** One field that was refused. `value` is what was given, shortened. */
export interface ConfigProblem {
  readonly field: string;
  readonly value: string;
  readonly expected: string;
}

/** The shortest age: a promise to keep it shorter than a sweep takes is not made. */
export const AGE_MS_MIN = 1000;

/** A hostile body can hold any number of unknown fields; an answer names this many problems and counts the rest. */
const PROBLEMS_MAX = 32;
const SHOWN_LENGTH_MAX = 64;

/**
 * Reads the body of a stream's creation; what is absent comes from `defaults`, field by field. `undefined`, no body at
 * all, is the defaults. More than `bytesMax` cannot be kept of a stream.
 *
 * @throws {RequestError} `invalid_config`, whose `problems` name every bad field at once.
 */
export function parseStreamConfig(
  json: unknown,
  defaults: StreamConfig,
  bytesMax = Number.MAX_SAFE_INTEGER,
): StreamConfig {
  if (json === undefined) return defaults;
  const problems = new Problems();
  const body = readObject(json, '', ['retention', 'overflow', 'ttlMs'], problems);
  const kept = readObject(body.retention, 'retention', ['events', 'bytes', 'ageMs'], problems);
  const config: StreamConfig = {
    retention: {
      events: readCount(kept.events, 'retention.events', defaults.retention.events, problems),
      bytes: readCount(kept.bytes, 'retention.bytes', defaults.retention.bytes, problems),
      ageMs: readCount(kept.ageMs, 'retention.ageMs', defaults.retention.ageMs, problems),
    },
    overflow: readOverflow(body.overflow, defaults.overflow, problems),
    ttlMs: readCount(body.ttlMs, 'ttlMs', defaults.ttlMs, problems),
  };
  const { bytes, ageMs } = config.retention;
  if (bytes === kept.bytes && bytes > bytesMax) problems.add('retention.bytes', bytes, `at most ${bytesMax}`);
  if (ageMs === kept.ageMs && ageMs > 0 && ageMs < AGE_MS_MIN)
    problems.add('retention.ageMs', ageMs, `0 or at least ${AGE_MS_MIN}`);
  problems.throwIfAny();
  return config;
}

/** Whether two configurations say the same, so that creating the stream again is no conflict (contract 2.1). */
export function sameConfig(a: StreamConfig, b: StreamConfig): boolean {
  return (
    a.retention.events === b.retention.events &&
    a.retention.bytes === b.retention.bytes &&
    a.retention.ageMs === b.retention.ageMs &&
    a.overflow === b.overflow &&
    a.ttlMs === b.ttlMs
  );
}

/**
 * How many of the oldest events, or bytes, have to go (contract 2.1). Eviction waits until more than twice the limit
 * is kept and then goes down to the limit in one step, so that the floor moves seldom and at least the limit stays.
 */
export function mustGo(kept: number, limit: number): number {
  return limit > 0 && kept > 2 * limit ? kept - limit : 0;
}

/** How many of the oldest events, or bytes, may go where room is wanted: what the limit does not ask to keep. */
export function mayGo(kept: number, limit: number): number {
  return limit > 0 && kept > limit ? kept - limit : 0;
}

/** Collects what is wrong, so that one answer can name it all. */
class Problems {
  readonly named: ConfigProblem[] = [];
  count = 0;

  add(field: string, value: unknown, expected: string): void {
    this.count++;
    if (this.named.length < PROBLEMS_MAX) this.named.push({ field, value: show(value), expected });
  }

  throwIfAny(): void {
    if (this.count === 0) return;
    const lines = this.named.map(({ field, value, expected }) => `${field}: ${value}, expected ${expected}`);
    const rest = this.count - this.named.length;
    if (rest > 0) lines.push(`and ${rest} more`);
    throw new RequestError('invalid_config', lines.join('; '), { problems: this.named });
  }
}

/** The fields of an object, none when it is absent or not an object; unknown ones are problems. */
function readObject(
  value: unknown,
  path: string,
  fields: readonly string[],
  problems: Problems,
): Readonly<Record<string, unknown>> {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    problems.add(path === '' ? 'body' : path, value, 'an object');
    return {};
  }
  const prefix = path === '' ? '' : `${path}.`;
  for (const name of Object.keys(value)) {
    if (fields.includes(name)) continue;
    const given = (value as Record<string, unknown>)[name];
    problems.add(prefix + shorten(name), given, `no such field; there are ${fields.join(', ')}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

function readCount(value: unknown, field: string, absent: number, problems: Problems): number {
  if (value === undefined) return absent;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  problems.add(field, value, 'a whole number from 0 to 2^53-1');
  return absent;
}

function readOverflow(
  value: unknown,
  absent: StreamConfig['overflow'],
  problems: Problems,
): StreamConfig['overflow'] {
  if (value === undefined) return absent;
  if (value === 'evict' || value === 'reject') return value;
  problems.add('overflow', value, '"evict" or "reject"');
  return absent;
}

/** What was given, short; never a walk into it, which a deeply nested value would turn into a stack overflow. */
function show(value: unknown): string {
  if (typeof value === 'string') return `"${shorten(value)}"`;
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

function shorten(text: string): string {
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}

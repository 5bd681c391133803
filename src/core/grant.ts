/**
 * What somebody may do (contract 9.1): which streams to publish to and subscribe to, and whether to administer. Pure:
 * from the claims of a token, or the entry of a static key, to a yes or no for one action.
 */

export interface Grant {
  /** Patterns of the streams that events may be published to. */
  readonly publish: readonly string[];
  /** Patterns of the streams that may be read. */
  readonly subscribe: readonly string[];
  /** Create, delete and list streams, and look at the state of any. It is no right to publish or to subscribe. */
  readonly admin: boolean;
  /** Read the metrics. */
  readonly metrics: boolean;
}

/** What a request needs a right for. `inspect` is to look at where a stream stands; `follow` is to subscribe by a prefix. */
export type Right = 'publish' | 'subscribe' | 'follow' | 'inspect' | 'admin' | 'metrics';

export const NO_GRANT: Grant = { publish: [], subscribe: [], admin: false, metrics: false };
export const FULL_GRANT: Grant = { publish: ['*'], subscribe: ['*'], admin: true, metrics: true };

/** Patterns in one list: each is tried for each request. */
const PATTERNS_MAX = 100;
/** The name of a stream (contract 2.4), or the beginning of one and a final `*`. */
const PATTERN = /^(?:[A-Za-z0-9._~:-]{1,200}|[A-Za-z0-9._~:-]{0,199}\*)$/;

/** Whether the pattern is the name, or ends in `*` and is the beginning of it. */
export function matchesPattern(pattern: string, stream: string): boolean {
  if (!pattern.endsWith('*')) return pattern === stream;
  return stream.startsWith(pattern.slice(0, -1));
}

/** Whether a name that begins with the prefix can be of the pattern. */
function meetsPrefix(pattern: string, prefix: string): boolean {
  const beginning = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern;
  return beginning.startsWith(prefix) || (pattern !== beginning && prefix.startsWith(beginning));
}

/** @param stream the name of the stream that it is about, or the prefix of names; empty where it is about none. */
export function allows(grant: Grant, right: Right, stream: string): boolean {
  switch (right) {
    case 'publish':
      return matchesAny(grant.publish, stream);
    case 'subscribe':
      return matchesAny(grant.subscribe, stream);
    case 'follow':
      return grant.subscribe.some((pattern) => meetsPrefix(pattern, stream));
    case 'inspect':
      return grant.admin || matchesAny(grant.subscribe, stream) || matchesAny(grant.publish, stream);
    case 'admin':
      return grant.admin;
    case 'metrics':
      return grant.metrics || grant.admin;
  }
}

/**
 * Reads the claim `gapless` of a token. Absent, it grants nothing; members that are not known are left alone.
 * @returns null when it does not have the documented shape: a claim that is half understood grants too much or too little.
 */
export function readGrant(claim: unknown): Grant | null {
  if (claim === undefined) return NO_GRANT;
  if (typeof claim !== 'object' || claim === null || Array.isArray(claim)) return null;
  const { publish = [], subscribe = [], admin = false, metrics = false } = claim as Record<string, unknown>;
  if (!arePatterns(publish) || !arePatterns(subscribe)) return null;
  if (typeof admin !== 'boolean' || typeof metrics !== 'boolean') return null;
  return { publish, subscribe, admin, metrics };
}

function matchesAny(patterns: readonly string[], stream: string): boolean {
  for (const pattern of patterns) if (matchesPattern(pattern, stream)) return true;
  return false;
}

function arePatterns(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length <= PATTERNS_MAX &&
    value.every((item) => typeof item === 'string' && PATTERN.test(item))
  );
}

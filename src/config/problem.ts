import { nearestName } from './nearest-name.js';
import { withoutLikelyUsers } from './without-users.js';

/** Something that keeps the broker from starting as it was told. */
export interface Problem {
  /** Where it stands, as the user wrote it: `--port`, `GAPLESS_PORT`, `port in gapless.json`. */
  readonly where: string;
  /** What is there, and what was expected. */
  readonly message: string;
}

const QUOTED_LENGTH_MAX = 80;
const CONTROL = /\p{Cc}/gu;

export function badValue(where: string, value: unknown, expected: string): Problem {
  return { where, message: `${quote(value)}, expected ${expected}` };
}

/** A name that is nobody's, and the one it may have been meant for. */
export function unknownName({ where, name, known, what }: UnknownName): Problem {
  const nearest = nearestName(name, known);
  return { where, message: `unknown ${what}${nearest === undefined ? '' : `, did you mean ${nearest}?`}` };
}

interface UnknownName {
  readonly where: string;
  readonly name: string;
  readonly known: readonly string[];
  readonly what: 'flag' | 'variable' | 'key' | 'command';
}

/** One line, which no control character of what was given can turn into something else at a terminal. */
export function formatProblem({ where, message }: Problem): string {
  return `${where}: ${message}`.replace(
    CONTROL,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** As JSON, which tells 8080 from "8080", without users, and cut, so that a pasted file does not fill the screen. */
function quote(value: unknown): string {
  const text = JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? withoutLikelyUsers(part) : part,
  );
  return text.length <= QUOTED_LENGTH_MAX ? text : `${text.slice(0, QUOTED_LENGTH_MAX)}…`;
}

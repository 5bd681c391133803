import { nearestName } from './nearest-name.js';

/** Something that keeps the broker from starting as it was told. */
export interface Problem {
  /** Where it stands, as the user wrote it: `--port`, `GAPLESS_PORT`, `port in gapless.json`. */
  readonly where: string;
  /** What is there, and what was expected. */
  readonly message: string;
}

const QUOTED_LENGTH_MAX = 80;

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

export function formatProblem({ where, message }: Problem): string {
  return `${where}: ${message}`;
}

/** JSON, so that a control character cannot reach a terminal, and cut, so that a pasted file does not fill it. */
function quote(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= QUOTED_LENGTH_MAX ? text : `${text.slice(0, QUOTED_LENGTH_MAX)}…`;
}

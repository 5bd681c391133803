import type { Kind } from './kinds.js';

/** The headings under which usage text and the README list the settings, in order. */
export type Group =
  | 'Network'
  | 'Security'
  | 'Memory and threads'
  | 'Streams'
  | 'Durability'
  | 'Publishing'
  | 'Reading'
  | 'MCP'
  | 'Limits'
  | 'Operations';

export interface Definition<T> {
  readonly group: Group;
  readonly kind: Kind<T>;
  readonly default: NoInfer<T>;
  /** One or two sentences, for people: what it does and what the special values mean. */
  readonly doc: string;
}

export function define<T>(definition: Definition<T>): Definition<T> {
  return definition;
}

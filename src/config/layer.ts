import type { Problem } from './problem.js';
import type { SettingKey } from './schema.js';

/** Where a value in force came from, in rising precedence. */
export type Source = 'default' | 'file' | 'env' | 'flag';

/** A value as it was given, not yet checked. */
export interface Given {
  readonly value: unknown;
  readonly where: string;
}

/** What one source says, and what is wrong with its form. */
export interface Layer {
  readonly source: Exclude<Source, 'default'>;
  readonly given: ReadonlyMap<SettingKey, Given>;
  readonly problems: readonly Problem[];
}

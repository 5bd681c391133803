/**
 * Every setting of the broker, in the order in which people read about them. Flags, environment variables,
 * keys of the config file, validation, usage text and the README's table all come from here (contract 11).
 */

import type { Definition } from './definition.js';
import { DURABILITY_DEFINITIONS } from './durability-settings.js';
import type { Kind } from './kinds.js';
import { LIMIT_DEFINITIONS } from './limit-settings.js';
import { MCP_DEFINITIONS } from './mcp-settings.js';
import { MEMORY_DEFINITIONS } from './memory-settings.js';
import { NETWORK_DEFINITIONS } from './network-settings.js';
import { OPERATION_DEFINITIONS } from './operation-settings.js';
import { PUBLISHING_DEFINITIONS } from './publishing-settings.js';
import { READING_DEFINITIONS } from './reading-settings.js';
import { SECURITY_DEFINITIONS } from './security-settings.js';
import { STREAM_DEFINITIONS } from './stream-settings.js';

const DEFINITIONS = {
  ...NETWORK_DEFINITIONS,
  ...SECURITY_DEFINITIONS,
  ...MEMORY_DEFINITIONS,
  ...STREAM_DEFINITIONS,
  ...DURABILITY_DEFINITIONS,
  ...PUBLISHING_DEFINITIONS,
  ...READING_DEFINITIONS,
  ...MCP_DEFINITIONS,
  ...LIMIT_DEFINITIONS,
  ...OPERATION_DEFINITIONS,
};

type Definitions = typeof DEFINITIONS;

export type SettingKey = keyof Definitions;

/**
 * The settings in force: plain data, so that it can be handed to worker threads. Sizes are bytes, and times
 * are milliseconds.
 */
export type Config = {
  readonly [Key in SettingKey]: Definitions[Key] extends Definition<infer T> ? T : never;
};

/** One row of the table, with the names it goes by. */
export interface Setting extends Omit<Definition<unknown>, 'kind'> {
  readonly key: SettingKey;
  /** Long flag with its dashes, such as `--drain-ms`. */
  readonly flag: string;
  /** Environment variable, such as `GAPLESS_DRAIN_MS`. */
  readonly env: string;
  readonly kind: Kind<unknown>;
}

export const ENV_PREFIX = 'GAPLESS_';

export const SETTINGS: readonly Setting[] = Object.entries(DEFINITIONS).map(([key, definition]) => {
  const words = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return {
    ...(definition as Definition<unknown>),
    key: key as SettingKey,
    flag: `--${words}`,
    env: ENV_PREFIX + words.toUpperCase().replaceAll('-', '_'),
  };
});

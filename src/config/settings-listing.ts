import type { Settings } from './relations.js';
import { SETTINGS } from './schema.js';
import { withoutUsers } from './without-users.js';

/** What is in force, one setting a line: key, value as one would write it, without users, source. No final line break. */
export function settingsListing({ config, sources }: Settings): string {
  const rows = SETTINGS.map(
    ({ key, kind }) => [key, withoutUsers(kind.show(config[key])), sources[key]] as const,
  );
  const keyWidth = Math.max(...rows.map(([key]) => key.length));
  const valueWidth = Math.max(...rows.map(([, value]) => value.length));
  return rows
    .map(([key, value, source]) => `${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${source}`)
    .join('\n');
}

/** The same for programs: values as in `Config`, each with its unit where it has one. */
export function settingsJson({ config, sources }: Settings): string {
  const entries = SETTINGS.map(({ key, kind: { unit } }) => {
    const value = config[key];
    return [key, { value, ...(unit === '' ? {} : { unit }), source: sources[key] }];
  });
  const shown = (_: string, part: unknown) => (typeof part === 'string' ? withoutUsers(part) : part);
  return JSON.stringify(Object.fromEntries(entries), shown, 2);
}

/**
 * What all entries of a shared log are: JSON that says first in which format they are. Brokers of several versions may
 * follow one log, and an older one has to be able to tell what it cannot read from what is no entry at all.
 */

import type { z } from 'zod';
import { LogCorruption } from '../event-log.js';

/** One more with each change after which a broker of before would misread an entry, or refuse it. */
const FORMAT = 1;

export function encodeInFormat(entry: object): string {
  return JSON.stringify({ format: FORMAT, ...entry });
}

/**
 * @param what the entry should be.
 * @param where names it for whoever has to find it.
 * @throws {LogCorruption}
 */
export function decodeInFormat<T>(
  json: string,
  { schema, what, where }: { schema: z.ZodType<T>; what: string; where: string },
): T {
  const { format, ...fields } = parse(json);
  if (!Number.isSafeInteger(format) || format < 1) throw new LogCorruption(`${where} is no ${what}`);
  if (format > FORMAT) {
    const known = `format ${format}; this one reads up to ${FORMAT}`;
    throw new LogCorruption(`${where} was written by a newer version of Gapless (${known})`);
  }
  const { success, data, error } = schema.safeParse(fields);
  if (!success) throw new LogCorruption(`${where} is no ${what}`, { cause: error });
  return data;
}

/** Whatever has no format says nothing. By hand, because a schema that lets other fields pass takes as long as all of them. */
function parse(json: string): { readonly format: number } {
  try {
    const parsed: unknown = JSON.parse(json);
    if (typeof parsed === 'object' && parsed !== null && 'format' in parsed) {
      return parsed as { readonly format: number };
    }
  } catch {
    // It is not JSON.
  }
  return { format: Number.NaN };
}

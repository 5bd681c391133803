/**
 * What all entries of a shared log are: JSON that says first in which format they are. Brokers of several versions may
 * follow one log, and an older one has to be able to tell what it cannot read from what is no entry at all.
 */

import { z } from 'zod';
import { LogCorruption } from '../event-log.js';

/** One more with each change after which a broker of before would misread an entry, or refuse it. */
const FORMAT = 1;

const formatSchema = z.looseObject({ format: z.int().min(1) });

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
  const described = formatSchema.safeParse(parse(json));
  if (!described.success) throw new LogCorruption(`${where} is no ${what}`, { cause: described.error });
  const { format, ...fields } = described.data;
  if (format > FORMAT) {
    const known = `format ${format}; this one reads up to ${FORMAT}`;
    throw new LogCorruption(`${where} was written by a newer version of Gapless (${known})`);
  }
  const { success, data, error } = schema.safeParse(fields);
  if (!success) throw new LogCorruption(`${where} is no ${what}`, { cause: error });
  return data;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

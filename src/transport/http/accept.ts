/**
 * Content negotiation (RFC 9110, 12.5.1) over the few types that a path has.
 */

interface Range {
  readonly type: string;
  readonly quality: number;
}

/** Ranges of a header that are looked at; no client sends so many. */
const RANGES_MAX = 32;

/**
 * The type of `offered` that the client wants most; among equals the one that is offered first.
 * @param header the raw header; empty: anything will do.
 * @returns null when none is acceptable.
 */
export function negotiate<T extends string>(header: string, offered: readonly T[]): T | null {
  if (header === '') return offered[0] ?? null;
  // Most clients name the one type that they want.
  const only = offered.find((type) => type === header);
  if (only !== undefined) return only;
  const ranges = header.split(',', RANGES_MAX).map(parseRange);
  let best: T | null = null;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) {
      best = type;
      bestQuality = quality;
    }
  }
  return best;
}

function parseRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  const quality = weight === undefined ? 1 : Number(weight.slice(2));
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}

/** The most specific range that covers the type decides. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  const family = `${type.slice(0, type.indexOf('/'))}/*`;
  for (const wanted of [type, family, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === wanted);
    if (range !== undefined) return range.quality;
  }
  return 0;
}

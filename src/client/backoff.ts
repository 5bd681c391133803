/** Longest time between two attempts, milliseconds, but for what a server asks for. */
const DELAY_MS_MAX = 30_000;
/** Longest that a server can ask for, milliseconds: a day. */
const ASKED_MS_MAX = 86_400_000;
/** Longest time of a timer, milliseconds: one of more, `Infinity` too, would run at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * How long to wait before attempt `failures + 1`, milliseconds: twice as long after each failure, and spread, for the
 * others were cut in the same moment.
 *
 * @param failures in a row, since something came.
 * @param askedMs what the server asked for by `retry:` or `Retry-After`; it is not undercut, up to a day.
 * @param random in [0, 1)
 */
export function delayMs(failures: number, baseMs: number, askedMs: number | null, random: number): number {
  const bound = Math.min(DELAY_MS_MAX, baseMs * 2 ** Math.min(failures, 16));
  const spread = bound * (0.5 + random);
  if (askedMs === null) return Math.round(spread);
  return Math.round(Math.min(ASKED_MS_MAX, askedMs) + (failures === 0 ? 0 : spread));
}

/** `Retry-After` in milliseconds; null where it is absent or a date. */
export function retryAfterMs(headers: Headers): number | null {
  const value = headers.get('retry-after');
  return value !== null && /^[0-9]{1,6}$/.test(value) ? Number(value) * 1000 : null;
}

/** Resolves after a time. @throws the signal's reason, as soon as it is aborted. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', aborted, { once: true });
    function done(): void {
      signal?.removeEventListener('abort', aborted);
      resolve();
    }
    function aborted(): void {
      clearTimeout(timer);
      reject(signal?.reason);
    }
  });
}

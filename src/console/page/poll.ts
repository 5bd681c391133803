/**
 * Asks for something again and again, a second after each answer, while the page is looked at. Of one that is slow there
 * is never more than one request.
 */

const INTERVAL_MS = 1000;
const RETRY_MS_MAX = 8000;

export interface PollOptions<T> {
  readonly ask: () => Promise<T>;
  readonly show: (answer: T) => void;
  /** @returns whether to go on asking. */
  readonly fail: (error: unknown) => boolean;
  readonly signal: AbortSignal;
}

/** Asks at once, and goes on until the signal or `fail` says that it is enough. */
export async function poll<T>({ ask, show, fail, signal }: PollOptions<T>): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const answer = await ask();
      if (signal.aborted) return;
      failures = 0;
      show(answer);
    } catch (error) {
      if (signal.aborted || !fail(error)) return;
      failures++;
    }
    await pause(Math.min(RETRY_MS_MAX, INTERVAL_MS * 2 ** Math.max(0, failures - 1)), signal);
    await untilVisible(signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

function untilVisible(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === 'visible' || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.visibilityState !== 'visible' && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}

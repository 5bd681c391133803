import { setTimeout as delay } from 'node:timers/promises';

/** Only a hang ever reaches it: no test passes or fails by how fast the machine is. */
export const DEADLINE_MS = 30_000;
const POLL_INTERVAL_MS = 10;

export class DeadlineError extends Error {
  constructor(what: string, deadlineMs: number) {
    super(`waited ${deadlineMs} ms in vain for ${what}`);
  }
}

/** Fails with `what` if the promise has not settled in time: a hang then names what never came. */
export async function withDeadline<T>(
  what: string,
  promise: Promise<T>,
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(what, deadlineMs)), deadlineMs);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Asks until the probe answers something other than `undefined` or `false`, and returns that. For state that can only
 * be asked for, such as a gauge or a file in /proc; where an event announces the state, wait for the event.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new DeadlineError(what, deadlineMs);
    await delay(POLL_INTERVAL_MS);
  }
}

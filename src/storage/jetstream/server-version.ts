/** Versions of NATS servers, as they say them: `2.9.10`, or `2.11.0-RC.1`. */

type Version = readonly [number, number, number];

/** The first that replays the purge of a subject as what it was, when it starts again (nats-server issue 4196). */
export const PURGES_SINCE: Version = [2, 9, 18];
/**
 * The first release after the mends by which a leader that was cut off keeps nothing in the place of what the others have
 * taken, by the dates of nats-server pulls 5957 and 6027. Seen to keep it: 2.9.10; not seen to: 2.10.27.
 */
export const AGREES_SINCE: Version = [2, 10, 23];

/** One that says nothing of the kind is taken for a new one. */
export function isBefore(version: string, since: Version): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? since;
  const differing = parts.findIndex((part, index) => part !== since[index]);
  return differing >= 0 && (parts[differing] as number) < (since[differing] as number);
}

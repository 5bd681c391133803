/**
 * Revisions of MCP, by their dates, and what differs between them on the wire (contract 12.2).
 */

/** Those whose streams can be resumed, and the two before there was anything to resume, which some servers still settle on. */
const RESUMABLE: ReadonlySet<string> = new Set([
  '2024-10-07',
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
]);

/** What a client speaks that does not say (MCP 2025-11-25, Transports, "Protocol Version Header"). */
export const ASSUMED_REVISION = '2025-03-26';

/** The first that knows events without a message: older clients take their empty data for a broken one. */
const FIRST_WITH_PRIMING = '2025-11-25';

export function isResumableRevision(revision: string): boolean {
  return RESUMABLE.has(revision);
}

/** The first without sessions, and without anything to resume. */
const FIRST_STATELESS = '2026-07-28';
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Whether requests of this revision stand for themselves: a server is to say which of them it knows. */
export function isStatelessRevision(revision: string): boolean {
  return DATE.test(revision) && revision >= FIRST_STATELESS;
}

/**
 * Whether a client that sends this revision has a session already: clients name what they agreed on, and before that
 * nothing, or the oldest there is.
 */
export function hasNegotiated(revision: string): boolean {
  return revision >= ASSUMED_REVISION;
}

/** Whether a client of this revision is sent ids without a message, and told when to come back. */
export function takesPriming(revision: string): boolean {
  return revision >= FIRST_WITH_PRIMING;
}

/**
 * How hard the event loop is pressed (contract 9.3): the largest delay seen lately. It rises at once and falls slowly,
 * so that who was sent away does not come back into the same stall.
 */

/** What is left of the pressure at the next look, a tenth of a second later: a half after 0.7 s. */
const FADES_TO = 0.9;

/**
 * @param pressureMs the pressure at the last look.
 * @param delayMs by how much the loop was late since.
 */
export function nextPressure(pressureMs: number, delayMs: number): number {
  return Math.max(delayMs, pressureMs * FADES_TO);
}

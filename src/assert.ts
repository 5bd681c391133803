/** A broken invariant of ours. Never caught for recovery: the process that holds it must stop. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/**
 * States what must hold; stays on in production. The message is a constant, so that success costs no string
 * building, and begins with the invariant it guards where there is one ("I2: …").
 *
 * @throws {InvariantError} when the condition does not hold.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

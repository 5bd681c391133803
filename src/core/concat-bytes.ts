/**
 * Parts one after the other, in memory of their own. Unlike that of `Buffer.concat` it is never a view on something larger,
 * such as a pool, so that its buffer can be handed to another thread.
 */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

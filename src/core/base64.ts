const ALPHABET = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
const PADDING = 0x3d;

/** Size of `bytes` bytes as base64 with padding. */
export function base64Size(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

/** Writes data[start, end) as base64 with padding (RFC 4648 section 4) and returns the offset after it. */
export function writeBase64(
  data: Uint8Array,
  start: number,
  end: number,
  to: Uint8Array,
  at: number,
): number {
  let out = at;
  let i = start;
  for (; i + 2 < end; i += 3) {
    const bits = ((data[i] as number) << 16) | ((data[i + 1] as number) << 8) | (data[i + 2] as number);
    to[out++] = ALPHABET[bits >> 18] as number;
    to[out++] = ALPHABET[(bits >> 12) & 63] as number;
    to[out++] = ALPHABET[(bits >> 6) & 63] as number;
    to[out++] = ALPHABET[bits & 63] as number;
  }
  if (i < end) {
    const second = i + 1 < end ? (data[i + 1] as number) : 0;
    const bits = ((data[i] as number) << 16) | (second << 8);
    to[out++] = ALPHABET[bits >> 18] as number;
    to[out++] = ALPHABET[(bits >> 12) & 63] as number;
    to[out++] = i + 1 < end ? (ALPHABET[(bits >> 6) & 63] as number) : PADDING;
    to[out++] = PADDING;
  }
  return out;
}

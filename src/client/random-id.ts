/** 128 random bits as hex: also where a page is not served securely, which `crypto.randomUUID` wants. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

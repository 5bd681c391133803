/**
 * Texts without what stands before the hosts of URLs, which may be a password or a token.
 */

/** Of a text that is right, such as a value that is in force. What is not before a host stays. */
export function withoutUsers(text: string): string {
  return text.replace(/(?<=\/\/)[^/?#]*@/g, '…@');
}

/** Of a text in which a URL may be wrong: all goes that may have been meant to be before a host. */
export function withoutLikelyUsers(text: string): string {
  const rest = withoutUsers(text);
  return rest.includes('//')
    ? rest.replace(/(?<=\/\/).*(?<!…)@/s, '…@')
    : rest.replace(/^[^\s@]*(?<!…)@/, '…@');
}

const PREFIX = /^[A-Za-z0-9._~:-]{0,200}$/;
const NAME = /^[A-Za-z0-9._~:-]{1,200}$/;

/** Streams whose names begin so are the broker's own. */
export const OWN_STREAMS_PREFIX = '~mcp:';

/**
 * Whether `text` can name a stream (contract 2.4). The characters are those that stand in a URL path as they are, so
 * a name has one spelling; `.` and `..` are out because clients and proxies resolve them away, and names of the broker's
 * own streams because nobody may touch those.
 */
export function isStreamName(text: string): boolean {
  return NAME.test(text) && text !== '.' && text !== '..' && !text.startsWith(OWN_STREAMS_PREFIX);
}

/** Whether the name of a stream can begin so. The empty text begins all of them. */
export function isNamePrefix(text: string): boolean {
  return PREFIX.test(text) && !text.startsWith(OWN_STREAMS_PREFIX);
}

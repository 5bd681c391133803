import { BlockList, isIP } from 'node:net';

/**
 * Checks on the texts that settings take. They judge form only: whether a host resolves, or a stream exists,
 * is found out by those who use it.
 */

const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*$/;
const WEB_ORIGIN = /^https?:\/\//;
const OTHER_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@,]+$/;
const STREAM_PATTERN = /^([A-Za-z0-9._~:-]{1,200}|[A-Za-z0-9._~:-]{0,200}\*)$/;

const MCP_MOUNT = /^\/[A-Za-z0-9._~-]{1,64}(?:\/[A-Za-z0-9._~-]{1,64}){0,7}=(.+)$/s;
/** What this server answers itself. */
const TAKEN_PATHS = /^\/(?:v1|healthz|readyz|metrics|console)(?:[/=]|$)/;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** An IPv4 or IPv6 address, or a host name. */
export function isHost(host: string): boolean {
  return isIP(host) !== 0 || HOST_NAME.test(host);
}

/**
 * Whether only this machine can reach what listens on the host (contract 9.2). Of names only `localhost`
 * counts: what any other one resolves to is for somebody else to decide (RFC 6761, section 6.3).
 */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/**
 * `*`, or an origin letter for letter as browsers send it, for it is compared so: no path, no final slash, no
 * default port. `null` is left out: every sandboxed frame and local file has that one.
 */
export function isCorsOrigin(origin: string): boolean {
  if (origin === '*') return true;
  // A pattern is not understood, and as a host name it would never match: better refused than silently
  // useless.
  if (origin.includes('*')) return false;
  if (!WEB_ORIGIN.test(origin)) return OTHER_ORIGIN.test(origin);
  return URL.canParse(origin) && new URL(origin).origin === origin;
}

/** An IP address, or a range: an address, a slash and the number of its fixed bits. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** Keys decide who gets in: they come over TLS, or from this machine. A URL with a user in it cannot be fetched. */
export function isKeySetUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')));
}

/** A stream name (contract 2.4), or the beginning of one and a final `*`. */
export function isStreamPattern(pattern: string): boolean {
  return STREAM_PATTERN.test(pattern);
}

/** A path of this server, `=`, and the URL of an MCP server or `stdio:` and its command. */
export function isMcpMount(text: string): boolean {
  const target = MCP_MOUNT.exec(text)?.[1];
  if (target === undefined || TAKEN_PATHS.test(text)) return false;
  if (target.startsWith('stdio:')) return target.slice('stdio:'.length).trim() !== '';
  if (!URL.canParse(target)) return false;
  const url = new URL(target);
  return /^https?:$/.test(url.protocol) && hasReadableUser(url);
}

/** Mounts with commas between them; a comma that is followed by no path and `=` belongs to the one before it. */
export function splitMcpMounts(joined: string): string[] {
  return joined.split(/,(?=\s*\/[A-Za-z0-9._~/-]+=)/).map((item) => item.trim());
}

/** Where a NATS server is. */
export function isNatsUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const parsed = new URL(url);
  const { protocol, hostname, pathname, search, hash } = parsed;
  return (
    ['nats:', 'tls:'].includes(protocol) &&
    hostname !== '' &&
    ['', '/'].includes(pathname) &&
    search === '' &&
    hash === '' &&
    hasReadableUser(parsed)
  );
}

/** Whether a `%` of a user or a password is of an encoded character, as it has to be before a host. */
function hasReadableUser({ username, password }: URL): boolean {
  try {
    decodeURIComponent(`${username}:${password}`);
    return true;
  } catch {
    return false;
  }
}

/** What names a JetStream stream and stands in its subjects. */
export function isJetStreamName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name);
}

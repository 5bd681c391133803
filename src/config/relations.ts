import type { Source } from './layer.js';
import { badValue, type Problem } from './problem.js';
import type { Config, SettingKey } from './schema.js';
import { isLoopback } from './text-forms.js';
import { formatSize } from './units.js';

type SizeKey =
  | 'memory'
  | 'streamBytesMax'
  | 'retentionBytes'
  | 'ringBytes'
  | 'eventBytesMax'
  | 'bodyBytesMax'
  | 'producerBytesMax';

interface Fit {
  readonly inner: SizeKey;
  readonly outer: SizeKey;
  /** Whether the inner must be less than the outer, and not only at most the same. */
  readonly isStrict: boolean;
  /** A durable stream keeps on disk what its memory does not hold. */
  readonly inMemoryOnly?: boolean;
}

/** What a durable stream keeps where nobody said: there is more disk than memory. */
const DURABLE_RETENTION_BYTES = 2 ** 30;

/** What has to fit into what, from the outside inwards, so that one lowered default can lower the next. */
const FITS: readonly Fit[] = [
  { inner: 'streamBytesMax', outer: 'memory', isStrict: false },
  // At the same size a stream could never evict for its policy's sake, only for want of memory.
  { inner: 'retentionBytes', outer: 'streamBytesMax', isStrict: true, inMemoryOnly: true },
  { inner: 'ringBytes', outer: 'streamBytesMax', isStrict: true },
  { inner: 'producerBytesMax', outer: 'memory', isStrict: true },
  { inner: 'eventBytesMax', outer: 'bodyBytesMax', isStrict: false },
];

/** The settings in force, and where each came from. */
export interface Settings {
  readonly config: Config;
  readonly sources: Readonly<Record<SettingKey, Source>>;
}

/**
 * Lowers each default that does not fit into what was set: `--memory 16MiB` alone is a fair wish, and the
 * default of one stream's share of it must not stand in the way.
 */
export function fitDefaults({ config, sources }: Settings): Config {
  const fitted: { -readonly [Key in SettingKey]: Config[Key] } = { ...config };
  if (isDurable(config) && sources.retentionBytes === 'default') {
    fitted.retentionBytes = DURABLE_RETENTION_BYTES;
  }
  for (const fit of FITS) {
    if (sources[fit.inner] !== 'default' || holds(fit, fitted)) continue;
    fitted[fit.inner] = fit.isStrict ? Math.floor(fitted[fit.outer] / 2) : fitted[fit.outer];
  }
  return fitted;
}

/** Checks values that are each right against one another. */
export function checkRelations({ config, whereIs }: RelationInput): Problem[] {
  const problems = FITS.filter((fit) => !holds(fit, config)).map(({ inner, outer, isStrict }) => {
    const bound = `${isStrict ? 'less than' : 'at most'} the ${formatSize(config[outer])} of ${whereIs(outer)}`;
    return badValue(whereIs(inner), formatSize(config[inner]), bound);
  });
  problems.push(...checkPair({ config, whereIs }, 'tlsCertFile', 'tlsKeyFile'));
  if (config.dataDir !== null && config.log.length > 0) {
    const expected = 'one of the two: a data directory belongs to one broker, a log is shared';
    problems.push(badValue(whereIs('log'), config.log.join(','), expected));
  }
  const programs = config.mcp.filter((mount) => mount.slice(mount.indexOf('=') + 1).startsWith('stdio:'));
  if (programs.length > 0 && config.log.length > 0) {
    const expected = 'the URL of a server: a program belongs to one broker, and a log is shared by several';
    problems.push(badValue(whereIs('mcp'), programs.join(','), expected));
  }
  if (!config.insecure && !hasKeys(config) && !isLoopback(config.host)) {
    const expected =
      'a loopback address such as 127.0.0.1, because nobody has to authenticate; ' +
      'give it keys, or, where the network itself keeps strangers out, add --insecure';
    problems.push(badValue(whereIs('host'), config.host, expected));
  }
  return [...problems, ...checkLog({ config, whereIs }), ...checkMounts({ config, whereIs })];
}

type FileKey = 'tlsCertFile' | 'tlsKeyFile' | 'logTlsCertFile' | 'logTlsKeyFile';

/** A certificate and its key are of use together only. */
function checkPair({ config, whereIs }: RelationInput, cert: FileKey, key: FileKey): Problem[] {
  if ((config[cert] === null) === (config[key] === null)) return [];
  const [given, missing] = config[cert] === null ? [key, cert] : [cert, key];
  return [{ where: whereIs(given), message: `alone, expected ${missing} as well: TLS needs both` }];
}

/** The servers of one cluster are reached in one way, by one user. */
function checkLog({ config, whereIs }: RelationInput): Problem[] {
  const problems = checkPair({ config, whereIs }, 'logTlsCertFile', 'logTlsKeyFile');
  const urls = config.log.map((url) => new URL(url));
  const users = urls
    .map(({ username, password }) => `${username}:${password}`)
    .filter((user) => user !== ':');
  const refuse = (expected: string): void => {
    problems.push(badValue(whereIs('log'), config.log.join(','), expected));
  };
  if (new Set(urls.map(({ protocol }) => protocol)).size > 1) refuse('all of them nats://, or all tls://');
  if (new Set(users).size > 1) refuse('one user for all of them');
  if (users.length > 0 && config.logCredentialsFile !== null) {
    refuse('a user here or in logCredentialsFile, and not in both');
  }
  return problems;
}

/** Which server a path stands for is said once. */
function checkMounts({ config, whereIs }: RelationInput): Problem[] {
  const paths = config.mcp.map((mount) => mount.slice(0, mount.indexOf('=')));
  const twice = paths.filter((path, index) => paths.indexOf(path) < index);
  return twice.map((path) => badValue(whereIs('mcp'), path, 'each path once'));
}

/** Whether streams outlive the process. */
export function isDurable({ dataDir, log }: Pick<Config, 'dataDir' | 'log'>): boolean {
  return dataDir !== null || log.length > 0;
}

/** Whether callers have to authenticate (contract 9.1). */
function hasKeys({ jwtKeysFile, jwksUrl, apiKeysFile }: Config): boolean {
  return jwtKeysFile !== null || jwksUrl !== '' || apiKeysFile !== null;
}

interface RelationInput {
  readonly config: Config;
  /** How the user would find the value again. */
  whereIs(key: SettingKey): string;
}

function holds({ inner, outer, isStrict, inMemoryOnly }: Fit, config: Config): boolean {
  if (inMemoryOnly && isDurable(config)) return true;
  return isStrict ? config[inner] < config[outer] : config[inner] <= config[outer];
}

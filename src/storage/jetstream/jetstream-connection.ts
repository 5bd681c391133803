/**
 * The connection to the NATS servers that keep a log: who they are, and who we are to them. Files are read again with each
 * connection that is made, so that certificates and credentials can be renewed while a broker runs.
 */

import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext, type PeerCertificate } from 'node:tls';
import {
  type Authenticator,
  AuthorizationError,
  connect,
  credsAuthenticator,
  type NatsConnection,
  NatsConnectionImpl,
  type TlsOptions,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node';
import { assert } from '../../assert.js';
import { LogError } from '../event-log.js';

export interface JetStreamAccess {
  /** `nats://` or `tls://`, of one cluster; `user:password@` or `token@` may stand before a host. */
  readonly urls: readonly string[];
  /** Has a user's `.creds`, or one line: `user:password`, or a token. */
  readonly credentialsFile: string | null;
  /** Who vouches for the servers; null: whom Node trusts. PEM, like those that follow. */
  readonly tlsCaFile: string | null;
  /** Our own, where the servers ask for it. */
  readonly tlsCertFile: string | null;
  readonly tlsKeyFile: string | null;
}

/** How long a server may take to answer. */
export const ANSWER_MS_MAX = 4000;
/** A server that does not answer pings for so long is left for another. */
const PING_MS = 2000;
const PINGS_MAX = 2;
const RECONNECT_MS = 200;
const CREDS = '-----BEGIN NATS USER JWT-----';

/**
 * @throws {LogError} `io`: no server can be reached now. `broken`: one was, and will not have us, or we not it.
 * @throws an error that says which of the files is wrong.
 */
export async function connectToServers(access: JetStreamAccess): Promise<NatsConnection> {
  const hosts = access.urls.map((url) => new URL(url));
  const authenticator = authenticatorOf(access, hosts);
  const tls = tlsOf(access, hosts);
  try {
    return await connect({
      servers: hosts.map(({ host }) => host),
      ...(authenticator === null ? {} : { authenticator }),
      ...(tls === null ? {} : { tls }),
      name: 'gapless',
      timeout: ANSWER_MS_MAX,
      maxReconnectAttempts: -1,
      // Else each request makes two errors in advance, for their stacks.
      noAsyncTraces: true,
      // Else the second refusal would be the last, and credentials that were renewed too late would stop the broker.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: RECONNECT_MS,
      pingInterval: PING_MS,
      maxPingOut: PINGS_MAX,
    });
  } catch (cause) {
    const refusal = refusalOf(cause);
    if (refusal !== null) throw new LogError('broken', refusal, { cause });
    throw new LogError('io', notReached(cause as Error, tls), { cause });
  }
}

/**
 * Gives up the socket that a connection has, or tries to have. The library by itself first waits until all was sent, for
 * ever where the server takes nothing; and when it is closed it keeps one on which a server has yet to say something.
 */
export function dropSocket(connection: NatsConnection): void {
  assert(connection instanceof NatsConnectionImpl, 'the library made it');
  connection.protocol.transport.discard();
}

function authenticatorOf({ credentialsFile }: JetStreamAccess, hosts: readonly URL[]): Authenticator | null {
  if (credentialsFile !== null) {
    let newest = readCredentials(credentialsFile);
    return (nonce) => {
      try {
        newest = readCredentials(credentialsFile);
      } catch {
        // Somebody is writing it. Those of before may do, and are tried again soon.
      }
      return newest(nonce);
    };
  }
  const { username = '', password = '' } = hosts.find((url) => url.username !== '') ?? {};
  if (username === '') return null;
  const [user, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
  return secret === '' ? tokenAuthenticator(user) : usernamePasswordAuthenticator(user, secret);
}

/** @throws an error that names the file, and nothing of what is in it. */
function readCredentials(file: string): Authenticator {
  const text = readFileSync(file, 'utf8');
  if (text.includes(CREDS)) {
    const authenticator = credsAuthenticator(Buffer.from(`${text}\n`));
    try {
      authenticator('');
    } catch {
      throw new Error(`${file}: not the credentials of a NATS user, a JWT and its seed`);
    }
    return authenticator;
  }
  const line = text.trim();
  if (line === '' || /\s/.test(line)) {
    throw new Error(`${file}: expected the .creds of a NATS user, or one line: user:password, or a token`);
  }
  const [user = '', ...password] = line.split(':');
  return password.length === 0
    ? tokenAuthenticator(line)
    : usernamePasswordAuthenticator(user, password.join(':'));
}

function tlsOf(
  { tlsCaFile, tlsCertFile, tlsKeyFile }: JetStreamAccess,
  hosts: readonly URL[],
): TlsOptions | null {
  const isWanted = hosts[0]?.protocol === 'tls:' || tlsCaFile !== null || tlsCertFile !== null;
  if (!isWanted) return null;
  checkPem(tlsCaFile, (ca) => ({ ca }));
  checkPem(tlsCertFile, (cert) => ({ cert }));
  if (tlsCertFile !== null) checkPem(tlsKeyFile, (key) => ({ cert: readFileSync(tlsCertFile), key }));
  const options = {
    ...(tlsCaFile === null ? {} : { caFile: tlsCaFile }),
    ...(tlsCertFile === null ? {} : { certFile: tlsCertFile }),
    ...(tlsKeyFile === null ? {} : { keyFile: tlsKeyFile }),
    checkServerIdentity: (name: string, certificate: PeerCertificate) =>
      checkIdentity(name, certificate, hosts),
  };
  return options;
}

function checkPem(file: string | null, use: (pem: Buffer) => object): void {
  if (file === null) return;
  const pem = readFileSync(file);
  try {
    createSecureContext(use(pem));
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`);
  }
}

/** The library does not say which address it means: one of those that we were given has to be in the certificate. */
function checkIdentity(name: string, certificate: PeerCertificate, hosts: readonly URL[]): Error | undefined {
  const names = hosts.map(({ hostname }) => hostname.replace(/^\[|\]$/g, ''));
  const meant = names.includes(name) ? [name] : names.filter((host) => isIP(host) !== 0);
  const errors = meant.map((host) => checkServerIdentity(host, certificate));
  return errors.includes(undefined)
    ? undefined
    : (errors.at(-1) ?? new Error(`not a server of ours: ${name}`));
}

/** Why a server that was reached cannot be used, where to come again would not help. Null: it may. */
export function refusalOf(error: unknown): string | null {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (error instanceof AuthorizationError && !/timeout/i.test(message)) {
    return `the servers of the log refuse this user: ${message}`;
  }
  if (/CERT|UNABLE_TO|INVALID_|MISMATCH|ERR_TLS/.test(code)) {
    return `the certificate of the servers of the log is not accepted: ${message}`;
  }
  return message.includes("does not support 'tls'") ? 'the servers of the log do not speak TLS' : null;
}

function notReached({ message }: Error, tls: TlsOptions | null): string {
  return tls !== null && message === 'timeout'
    ? 'no answer over TLS, which may be how a server says that it wants another certificate of us'
    : message;
}

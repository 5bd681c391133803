/**
 * What can be found out of the NATS servers of a log, by a connection to each, for somebody who wants to know how they do.
 * Nothing is made or changed.
 */

import { JetStreamApiCodes, JetStreamApiError, jetstreamManager, type StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { ANSWER_MS_MAX, connectToServers, type JetStreamAccess } from './jetstream-connection.js';
import { lossySetting } from './jetstream-stream.js';

export interface ServerReport {
  /** Host and port. */
  readonly address: string;
  /** What kept it from being asked; null: nothing. */
  readonly problem: string | null;
  readonly name: string | null;
  readonly version: string | null;
}

/** One of the servers that have the log, but the one that leads. */
export interface FollowerReport {
  readonly name: string;
  /** Whether it has all that there is, or is about to. */
  readonly current: boolean;
  /** Operations that it has yet to do. */
  readonly behind: number;
}

export interface StoredLogReport {
  /** How many servers are to have it. */
  readonly replicas: number;
  /** Name of the one that leads; null: none does, or a server has the log alone. */
  readonly leader: string | null;
  readonly followers: readonly FollowerReport[];
  readonly messages: number;
  readonly bytes: number;
  /** Null: nothing limits it but the account and the servers. */
  readonly bytesMax: number | null;
  /** What somebody has set that loses events; null: nothing. */
  readonly lossySetting: string | null;
}

export interface JetStreamReport {
  /** Those that were named, and those that they know of which answered. */
  readonly servers: readonly ServerReport[];
  /** What kept the log from being looked at; null: nothing. */
  readonly problem: string | null;
  /** Null: it could not be looked at, or, without a problem, has not been made yet. */
  readonly log: StoredLogReport | null;
}

interface Asked {
  readonly report: ServerReport;
  readonly id: string;
  readonly others: readonly string[];
  readonly info: StreamInfo | Error | null;
}

/** @throws an error that says which of the files of the access is wrong. */
export async function reportOf(access: JetStreamAccess, stream: string): Promise<JetStreamReport> {
  const named = await Promise.all(access.urls.map((url) => ask(access, url, stream)));
  const addresses = new Set(named.flatMap(({ others }) => others));
  for (const { report } of named) addresses.delete(report.address);
  const known = [...addresses].map((address) =>
    ask(access, withHost(access.urls[0] as string, address), stream),
  );
  const found = (await Promise.all(known)).filter(({ report }) => report.problem === null);
  const byId = new Map([...found, ...named].map((asked) => [asked.id, asked]));
  const servers = [...byId.values()].sort((one, other) =>
    one.report.address < other.report.address ? -1 : 1,
  );
  const infos = servers.map(({ info }) => info);
  const info = infos.find((found) => found !== null && !(found instanceof Error)) as StreamInfo | undefined;
  const errors = infos.filter((found) => found instanceof Error);
  const isThere = info !== undefined || errors.length === 0 || !errors.every(isMissing);
  const problem = servers.find(({ report }) => report.problem !== null)?.report.problem ?? null;
  return {
    servers: servers.map(({ report }) => report),
    problem: info === undefined && isThere ? (errors[0]?.message ?? problem) : null,
    log: info === undefined ? null : storedOf(info),
  };
}

async function ask(access: JetStreamAccess, url: string, stream: string): Promise<Asked> {
  const { host: address } = new URL(url);
  let connection: NatsConnection;
  try {
    connection = await connectToServers({ ...access, urls: [url] });
  } catch (error) {
    const report = { address, problem: (error as Error).message, name: null, version: null };
    return { report, id: address, others: [], info: null };
  }
  try {
    const { server_id, server_name, version, connect_urls = [] } = connection.info ?? {};
    const report = { address, problem: null, name: server_name ?? null, version: version ?? null };
    const manager = await jetstreamManager(connection, { timeout: ANSWER_MS_MAX, checkAPI: false });
    const info = await manager.streams.info(stream).catch((error: Error) => error);
    return { report, id: server_id ?? address, others: connect_urls, info };
  } finally {
    await connection.close();
  }
}

function withHost(url: string, host: string): string {
  const other = new URL(url);
  other.host = host;
  return other.href;
}

function isMissing(error: Error): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

function storedOf({ config, state, cluster }: StreamInfo): StoredLogReport {
  return {
    replicas: config.num_replicas,
    leader: cluster?.leader ?? null,
    followers: (cluster?.replicas ?? []).map(({ name, current, lag = 0 }) => ({
      name,
      current,
      behind: lag,
    })),
    messages: state.messages,
    bytes: state.bytes,
    bytesMax: config.max_bytes > 0 ? config.max_bytes : null,
    lossySetting: lossySetting(config),
  };
}

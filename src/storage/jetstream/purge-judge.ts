/**
 * Whether the servers of a log may purge a subject of it. Replicas of NATS before 2.9.18 that replay a purge after a restart
 * purge everything that was in the JetStream stream by then, of whichever subject (nats-server issue 4196). A broker is
 * connected to one server and a purge is replayed by all, so each of them is asked for its version.
 */

import type { JetStreamReport } from './jetstream-report.js';
import { isBefore, PURGES_SINCE } from './server-version.js';

export interface PurgeJudgeOptions {
  readonly report: () => Promise<Pick<JetStreamReport, 'servers' | 'log'>>;
  /** Milliseconds, of a clock that only goes up. */
  readonly nowMs: () => number;
}

/** For how long servers are taken to be those that they were. */
const LOOKED_MS = 60_000;

export class PurgeJudge {
  readonly #options: PurgeJudgeOptions;
  /** By the name of a server: one that is down has the version that it had. */
  #versions = new Map<string, string>();
  #verdict: Promise<boolean> | null = null;
  #lookedAtMs = 0;

  constructor(options: PurgeJudgeOptions) {
    this.#options = options;
  }

  /** Resolves with false as well where somebody cannot be asked. */
  mayPurge(): Promise<boolean> {
    const nowMs = this.#options.nowMs();
    if (this.#verdict === null || nowMs - this.#lookedAtMs >= LOOKED_MS) {
      this.#lookedAtMs = nowMs;
      this.#verdict = this.#look().catch(() => false);
    }
    return this.#verdict;
  }

  async #look(): Promise<boolean> {
    const { servers, log } = await this.#options.report();
    if (log === null) return false;
    const names = [log.leader, ...log.followers.map(({ name }) => name)];
    const versions = new Map<string, string>();
    for (const name of names) {
      const version =
        servers.find((server) => server.name === name)?.version ?? this.#versions.get(name ?? '');
      if (name !== null && version != null) versions.set(name, version);
    }
    this.#versions = versions;
    return names.length === versions.size && [...versions.values()].every(replaysPurges);
  }
}

function replaysPurges(version: string): boolean {
  return !isBefore(version, PURGES_SINCE);
}

/** How the servers behind the front are used, for operators. */

import { FrontCount, type FrontCounts } from './front-counts.js';
import type { ServerUse } from './messages.js';
import type { Session } from './session/session.js';

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export class ServerUses {
  readonly #paths: readonly string[];
  readonly #counts: FrontCounts;
  /** Since the start, by mount. */
  readonly #refusedResumes: number[];

  constructor({ paths, counts }: { paths: readonly string[]; counts: FrontCounts }) {
    this.#paths = paths;
    this.#counts = counts;
    this.#refusedResumes = paths.map(() => 0);
  }

  /** A client came back to messages that are gone, or was overtaken. */
  noteRefused(mount: number): void {
    this.#counts.add(FrontCount.refusedResumes, 1);
    this.#refusedResumes[mount] = (this.#refusedResumes[mount] as number) + 1;
  }

  /** @param readers mounts of the connections that read a stream, one for each. */
  report(sessions: Iterable<Session>, readers: Iterable<number>): ServerUse[] {
    const uses = this.#paths.map((path, mount) => ({
      path,
      sessions: 0,
      calls: 0,
      readers: 0,
      refusedResumes: this.#refusedResumes[mount] as number,
    }));
    for (const { mount, callsUnderWay } of sessions) {
      const use = uses[mount] as Writable<ServerUse>;
      use.sessions++;
      use.calls += callsUnderWay;
    }
    for (const mount of readers) (uses[mount] as Writable<ServerUse>).readers++;
    return uses;
  }
}

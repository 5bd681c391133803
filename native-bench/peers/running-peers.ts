import type { Peer, RunningPeer } from './peer.js';

/** The peers of one bench, each started when it is first asked for. */
export class RunningPeers {
  readonly #core: number | null;
  readonly #running = new Map<Peer, RunningPeer>();

  constructor(core: number | null) {
    this.#core = core;
  }

  /** @param prepare what to do once it runs. */
  async running(
    peer: Peer,
    prepare: (peer: RunningPeer) => Promise<void> = async () => undefined,
  ): Promise<RunningPeer> {
    const there = this.#running.get(peer);
    if (there !== undefined) return there;
    const started = await peer.start(this.#core);
    this.#running.set(peer, started);
    await prepare(started);
    return started;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.values()].map((peer) => peer.stop()));
  }
}

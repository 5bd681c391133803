/**
 * The port to listen on. The edges share theirs, and the system would let a second broker share it too, and split
 * the traffic between the two in silence. So a port is claimed first, in two ways:
 *
 * - A listener that does not share tries it: that finds everybody who listens already.
 * - A name is held that only one process has, for as long as this one lives: between the try and the edges' own
 *   listening another broker could try it as well. Linux has such names, in the same namespace as the ports; elsewhere
 *   there is that moment.
 */

import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions, type Server } from 'node:net';

export interface PortClaim {
  readonly port: number;
  /** Gives the port up, where the process goes on. */
  release(): void;
}

/** Attempts at a free port: one fails if another program is given the same port first. */
const ATTEMPTS_MAX = 100;

/**
 * Claims `port`; with 0 it only finds out whether the address can be listened on: see `listenOnFreePort`.
 * @throws the system's error, such as EADDRINUSE or EADDRNOTAVAIL.
 */
export async function claimPort(host: string, port: number): Promise<PortClaim> {
  if (port !== 0) return claimThis(host, port);
  await tryPort(host, 0);
  return { port, release: () => undefined };
}

/**
 * Claims a port that is free now and gives it to `listen`, for the library shares no port that is left to the system.
 * Until all edges listen the system may give it to another program: then it is another port.
 */
export async function listenOnFreePort(
  host: string,
  listen: (port: number) => Promise<void>,
): Promise<PortClaim> {
  for (let attempt = 1; ; attempt++) {
    let claim: PortClaim | null = null;
    try {
      claim = await claimThis(host, await tryPort(host, 0));
      await listen(claim.port);
      return claim;
    } catch (error) {
      claim?.release();
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

async function claimThis(host: string, port: number): Promise<PortClaim> {
  const name = process.platform === 'linux' ? await listen({ path: `\0gapless ${host}:${port}` }) : null;
  name?.unref();
  try {
    await tryPort(host, port);
  } catch (error) {
    name?.close();
    throw error;
  }
  return { port, release: () => name?.close() };
}

/** @returns `port`, or for 0 one that was free. */
async function tryPort(host: string, port: number): Promise<number> {
  const probe = await listen({ host, port, exclusive: true });
  const { port: found } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return found;
}

async function listen(options: ListenOptions): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  server.listen(options);
  await once(server, 'listening');
  return server;
}

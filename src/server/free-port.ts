/**
 * The port to listen on. The edges share theirs, and the system would let a second broker share it too, and split
 * the traffic between the two; a listener that does not share finds that out first. It also settles the port where
 * any will do, for a port that is left to the system is not shared.
 */

import { type AddressInfo, createServer } from 'node:net';

/**
 * @returns `port`, or one that is free now for 0.
 * @throws the system's error, such as EADDRINUSE or EADDRNOTAVAIL.
 */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ host, port, exclusive: true }, () => {
      const free = (probe.address() as AddressInfo).port;
      probe.close(() => resolve(free));
    });
  });
}

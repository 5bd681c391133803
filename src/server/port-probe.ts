/**
 * Whether an address is free. The edges share their port, and the system would let a second broker share it too,
 * and split the traffic between the two; a listener that does not share tells.
 */

import { createServer } from 'node:net';

/** @throws the system's error, such as EADDRINUSE or EADDRNOTAVAIL. Port 0 is always free. */
export function assertPortFree(host: string, port: number): Promise<void> {
  if (port === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()));
  });
}

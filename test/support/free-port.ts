/**
 * Ports for programs that have to be told theirs, or have it again when they start anew. Nobody else is given them
 * meanwhile: they lie below those that the system gives to who asks for any, and each process that asks here has a block
 * of its own. It holds that by listening on the block's first port for as long as it lives.
 */

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const FIRST_PORT = 20_000;
const BLOCK_PORTS = 100;
const BLOCKS = 120;

let block: Promise<number> | undefined;
let asked = 0;

/** A port of the loopback that is free; each that is asked for is another one, until all of the block have been. */
export async function freePort(): Promise<number> {
  block ??= holdBlock();
  const first = await block;
  for (let tries = 1; tries < BLOCK_PORTS; tries++) {
    const port = first + 1 + (asked++ % (BLOCK_PORTS - 1));
    const probe = await tryPort(port);
    if (probe === null) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
  throw new Error(`no port is free from ${first} to ${first + BLOCK_PORTS - 1}`);
}

async function holdBlock(): Promise<number> {
  const start = process.pid % BLOCKS;
  for (let offset = 0; offset < BLOCKS; offset++) {
    const first = FIRST_PORT + ((start + offset) % BLOCKS) * BLOCK_PORTS;
    const held = await tryPort(first);
    if (held === null) continue;
    held.unref();
    return first;
  }
  throw new Error('every block of ports is held');
}

async function tryPort(port: number): Promise<Server | null> {
  const server = createServer((socket) => socket.destroy());
  server.listen({ port, host: '127.0.0.1', exclusive: true });
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return null;
  }
}

import { fileURLToPath } from 'node:url';
import { freePort, type Peer, startProgram } from './peer.js';

/** A server of this folder, in a Node of its own. */
function nodeServer(name: string): Peer {
  const file = fileURLToPath(new URL(`./${name}-server.js`, import.meta.url));
  return {
    name,
    missing: () => null,
    async start(core) {
      const port = await freePort();
      return startProgram({ command: [process.execPath, file, String(port)], core, port });
    },
  };
}

export const nodeHttp = nodeServer('node-http');
export const betterSse = nodeServer('better-sse');

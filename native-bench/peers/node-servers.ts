import { fileURLToPath } from 'node:url';
import { freePort, startProgram } from './peer.js';
import type { ServerPeer } from './server-peer.js';

/** A server of this folder, in a Node of its own; a path is a topic. */
function nodeServer(name: string): ServerPeer {
  const file = fileURLToPath(new URL(`./${name}-server.js`, import.meta.url));
  return {
    name,
    missing: () => null,
    async start(core) {
      const port = await freePort();
      return startProgram({ command: [process.execPath, file, String(port)], core, port });
    },
    place: (topic) => ({ publishPath: `/${topic}-@`, subscribePath: `/${topic}-@` }),
  };
}

export const nodeHttp = nodeServer('node-http');
export const betterSse = nodeServer('better-sse');

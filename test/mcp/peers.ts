import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/deadline.js';
import { freePort } from '../support/free-port.js';
import { REPOSITORY_ROOT } from '../support/paths.js';

/** Servers, clients and a suite that others wrote, as they are published: `npm ci --prefix test/mcp/peers`. */
const FOLDER = join(REPOSITORY_ROOT, 'test/mcp/peers/node_modules');

const PROGRAMS = {
  conformance: '@modelcontextprotocol/conformance/dist/index.js',
  everything: '@modelcontextprotocol/server-everything/dist/index.js',
  fastmcp: 'fastmcp/dist/FastMCP.js',
  filesystem: '@modelcontextprotocol/server-filesystem/dist/index.js',
  mcpRemote: 'mcp-remote/dist/proxy.js',
} as const;

export function peerFile(name: keyof typeof PROGRAMS): string {
  return join(FOLDER, PROGRAMS[name]);
}

/** What to say instead of running without them; false where they are, or have to be. */
export const PEERS_MISSING =
  existsSync(FOLDER) || process.env.CI !== undefined ? false : 'npm ci --prefix test/mcp/peers';

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface Peer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Starts a program of Node that serves MCP over HTTP on the port that its environment names. @param at absent: any. */
export async function startPeer(words: readonly string[], at?: number): Promise<Peer> {
  const port = at ?? (await freePort());
  const child = spawn(process.execPath, words, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, PORT: String(port) },
  });
  let complaints = '';
  child.stderr.on('data', (text: Buffer) => (complaints += text));
  running.add(child);
  child.once('close', () => running.delete(child));
  const stop = async (): Promise<void> => {
    if (!running.has(child)) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  const url = `http://127.0.0.1:${port}/mcp`;
  await eventually(`${words.join(' ')} to listen`, () => {
    assert.equal(child.exitCode, null, complaints);
    return fetch(url, { method: 'OPTIONS' }).then(
      () => true,
      () => false,
    );
  });
  return { url, stop };
}

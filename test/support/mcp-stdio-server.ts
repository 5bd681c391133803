/**
 * An MCP server over standard input and output that does what the name of a tool says. Run by the front as a process of
 * its own.
 */

import { createInterface } from 'node:readline';

interface Asked {
  id?: string | number;
  method?: string;
  params?: { name?: string; _meta?: { progressToken?: number }; protocolVersion?: string };
  result?: unknown;
}

const say = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
/** Calls that wait for `release`. */
const held: (() => void)[] = [];
let asked: string | number | undefined;

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result } = JSON.parse(line) as Asked;
  if (method === 'initialize') {
    const { protocolVersion } = params ?? {};
    return say({
      id,
      result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { pid: process.pid } },
    });
  }
  if (method === undefined) return say({ id: asked, result: { picked: result } });
  if (id === undefined) return;
  const progress = (n: number): void =>
    say({
      method: 'notifications/progress',
      params: { progressToken: params?._meta?.progressToken, progress: n },
    });
  switch (params?.name) {
    case 'hold':
      progress(1);
      held.push(() => {
        progress(2);
        say({ id, result: { held: id } });
      });
      return;
    case 'release':
      for (const release of held.splice(0)) release();
      return say({ id, result: {} });
    case 'ask':
      asked = id;
      return say({ id: 's1', method: 'sampling/createMessage', params: {} });
    case 'tell':
      say({ method: 'notifications/tools/list_changed' });
      return say({ id, result: {} });
    case 'garbage':
      process.stdout.write('this is no message\n\n');
      process.stderr.write('something for people\n');
      return say({ id, result: { after: 'garbage' } });
    case 'deaf':
      say({ id, result: {} });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      return;
    case 'die':
      process.exit(3);
      return;
    case 'environment':
      return say({ id, result: { names: Object.keys(process.env).sort() } });
    case 'pid':
      return say({ id, result: { pid: process.pid } });
  }
});

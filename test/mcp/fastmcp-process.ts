/** A FastMCP server that counts: `fastmcp-process.js`, with its port in `PORT`. */

import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { type CountArguments, progressText, resultText } from './counting-tool.js';
import { peerFile } from './peers.js';

/** What is used of it here; its package is not among those that the compiler sees. */
interface FastMcp {
  addTool(tool: {
    name: string;
    description: string;
    parameters: z.ZodType;
    execute(
      given: CountArguments,
      context: { reportProgress(report: object): Promise<void> },
    ): Promise<string>;
  }): void;
  start(options: object): Promise<void>;
}

const { FastMCP } = (await import(pathToFileURL(peerFile('fastmcp')).href)) as {
  FastMCP: new (options: { name: string; version: string }) => FastMcp;
};
const server = new FastMCP({ name: 'counting', version: '1.0.0' });
server.addTool({
  name: 'count',
  description: 'counts',
  parameters: z.object({ label: z.string(), steps: z.number() }),
  async execute({ label, steps }, { reportProgress }) {
    for (let n = 1; n <= steps; n++) {
      await reportProgress({ progress: n, total: steps, message: progressText(label, n) });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return resultText(label, steps);
  },
});
await server.start({
  transportType: 'httpStream',
  httpStream: { port: Number(process.env.PORT), host: '127.0.0.1' },
});

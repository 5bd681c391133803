import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Script = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that answers each request as it is told, in their order; the last script serves all that follow. */
export class ScriptedServer {
  readonly requests: IncomingMessage[] = [];
  readonly #server: Server;

  private constructor(scripts: readonly Script[]) {
    this.#server = createServer((request, response) => {
      const script = scripts[Math.min(this.requests.length, scripts.length - 1)];
      this.requests.push(request);
      script?.(request, response);
    });
  }

  static async start(...scripts: Script[]): Promise<ScriptedServer> {
    const server = new ScriptedServer(scripts);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** Answers with these blocks of an event stream and leaves the connection open. */
export function streams(...blocks: readonly string[]): Script {
  return (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(`retry: 1\n\n${blocks.map((block) => `${block}\n\n`).join('')}`);
  };
}

/** As `streams`, and then the body ends properly. */
export function streamsAndEnds(blocks: readonly string[]): Script {
  return (request, response) => {
    streams(...blocks)(request, response);
    response.end();
  };
}

export function answers(
  status: number,
  problem: object | null,
  headers: Record<string, string> = {},
): Script {
  return (request, response) => {
    request.resume().once('end', () => {
      const type = problem === null ? {} : { 'Content-Type': 'application/problem+json' };
      response
        .writeHead(status, { ...type, ...headers })
        .end(problem === null ? '' : JSON.stringify(problem));
    });
  };
}

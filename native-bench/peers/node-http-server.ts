/**
 * What is written first when events are needed: Node's own HTTP server, a set of responses for each path, and a loop. No
 * history, no backpressure: a write that is not taken is buffered by Node.
 */

import { createServer, type ServerResponse } from 'node:http';

const paths = new Map<string, Set<ServerResponse>>();
let id = 0;

function subscribersOf(path = ''): Set<ServerResponse> {
  let subscribers = paths.get(path);
  if (subscribers === undefined) paths.set(path, (subscribers = new Set()));
  return subscribers;
}

const server = createServer((request, response) => {
  const subscribers = subscribersOf(request.url);
  if (request.method === 'GET') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    response.flushHeaders();
    subscribers.add(response);
    response.on('close', () => subscribers.delete(response));
    return;
  }
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (part: string) => {
    body += part;
  });
  request.on('end', () => {
    const frame = `id: ${++id}\ndata: ${body}\n\n`;
    for (const subscriber of subscribers) subscriber.write(frame);
    response.end('ok');
  });
});
server.keepAliveTimeout = 3_600_000;
server.listen(Number(process.argv[2]), '127.0.0.1');

/** The npm package `better-sse` on Node's own HTTP server: sessions in one channel, as its documentation shows. */

import { createServer } from 'node:http';
import { createChannel, createSession } from 'better-sse';

const channel = createChannel();

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    void createSession(request, response, { keepAlive: null, serializer: String }).then((session) =>
      channel.register(session),
    );
    return;
  }
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (part: string) => {
    body += part;
  });
  request.on('end', () => {
    channel.broadcast(body);
    response.end('ok');
  });
});
server.keepAliveTimeout = 3_600_000;
server.listen(Number(process.argv[2]), '127.0.0.1');

/** The npm package `better-sse` on Node's own HTTP server: a channel for each path, as its documentation shows. */

import { createServer } from 'node:http';
import { type Channel, createChannel, createSession } from 'better-sse';

const channels = new Map<string, Channel>();

function channelOf(path = ''): Channel {
  let channel = channels.get(path);
  if (channel === undefined) channels.set(path, (channel = createChannel()));
  return channel;
}

const server = createServer((request, response) => {
  const channel = channelOf(request.url);
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

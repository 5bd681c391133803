import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface WrongRequest {
  method: string;
  url: URL;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface WrongAnswer {
  status: number;
  headers: IncomingHttpHeaders;
}

/** What a server does wrong; everything that is absent it does as the broker behind it. */
export interface Fault {
  /** Changes a request before the broker sees it. */
  request?: (asked: WrongRequest) => void;
  /** Changes status and headers of the answer. */
  answer?: (answer: WrongAnswer, asked: WrongRequest) => void;
  /** Changes a body that is no event stream. */
  body?: (text: string, asked: WrongRequest, answer: WrongAnswer) => string;
  /** What stands for the `index`-th event of a subscription, counted from 0; `frame` is without its empty line. */
  event?: (frame: string, index: number) => string[];
  /** What stands for a frame that is no event. */
  frame?: (frame: string) => string[];
  /** Changes what comes from the broker on a WebSocket, and not its length; JSON messages are plain in there. */
  socket?: (text: string) => string;
  /** How an event stream ends, where the broker ends it or cuts it. */
  ending?: { end?: 'cut'; cut?: 'end' };
}

/** A broker seen through a fault: passes everything on, and does one thing wrong. */
export class WrongServer {
  readonly #server: Server;

  private constructor(brokerPort: number, fault: Fault) {
    this.#server = createServer((incoming, outgoing) => {
      serve(brokerPort, fault, incoming, outgoing).catch(() => outgoing.destroy());
    });
    this.#server.on('upgrade', (incoming, socket: Socket) => relay(brokerPort, fault, incoming, socket));
  }

  static async start(brokerPort: number, fault: Fault): Promise<WrongServer> {
    const server = new WrongServer(brokerPort, fault);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

async function serve(
  port: number,
  fault: Fault,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const asked: WrongRequest = {
    method: incoming.method ?? 'GET',
    url: new URL(`http://127.0.0.1:${port}`),
    headers: { ...incoming.headers },
    body: await bodyOf(incoming),
  };
  const [path = '/', query = ''] = (incoming.url ?? '/').split('?');
  asked.url.search = query;
  fault.request?.(asked);
  const passed = asked.url.search === `?${query}` || query === '' ? query : asked.url.search.slice(1);
  const message = await pass(port, asked, path + (passed === '' ? '' : `?${passed}`));
  const answer = { status: message.statusCode ?? 0, headers: { ...message.headers } };
  fault.answer?.(answer, asked);
  if (message.headers['content-type'] === 'text/event-stream' && asked.method === 'GET') {
    outgoing.once('close', () => message.destroy());
    delete answer.headers['content-length'];
    outgoing.writeHead(answer.status, answer.headers as Record<string, string>);
    return streamEvents(message, outgoing, fault);
  }
  const body = await bodyOf(message);
  const text = fault.body === undefined ? body : Buffer.from(fault.body(body.toString(), asked, answer));
  if (asked.method !== 'HEAD') delete answer.headers['content-length'];
  outgoing.writeHead(answer.status, answer.headers as Record<string, string>);
  outgoing.end(asked.method === 'HEAD' ? undefined : text);
}

/** A WebSocket, byte by byte. */
function relay(port: number, fault: Fault, incoming: IncomingMessage, client: Socket): void {
  const [path = '/', query = ''] = (incoming.url ?? '/').split('?');
  const url = new URL(`http://127.0.0.1:${port}`);
  url.search = query;
  const asked = { method: 'GET', url, headers: { ...incoming.headers }, body: Buffer.alloc(0) };
  fault.request?.(asked);
  const broker = connect({ host: '127.0.0.1', port });
  const lines = Object.entries(asked.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  broker.write(`GET ${path}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`);
  for (const socket of [client, broker]) {
    socket.on('error', () => undefined);
    socket.on('close', () => [client, broker].forEach((each) => each.destroy()));
  }
  client.pipe(broker);
  broker.on('data', (chunk: Buffer) => {
    client.write(Buffer.from(fault.socket?.(chunk.toString('latin1')) ?? chunk.toString('latin1'), 'latin1'));
  });
}

function pass(port: number, { method, headers, body }: WrongRequest, path: string): Promise<IncomingMessage> {
  const announced = Number(headers['content-length'] ?? 0);
  const length = announced > body.length && announced > 1e9 ? String(announced) : String(body.length);
  const sent = {
    ...headers,
    ...(headers['content-length'] === undefined ? {} : { 'content-length': length }),
  };
  return new Promise((resolve, reject) => {
    const passing = request({ host: '127.0.0.1', port, method, path, headers: sent, agent: false });
    passing.once('response', resolve);
    passing.on('error', reject);
    if (body.length > 0) passing.write(body);
    if (length === String(body.length) || body.length === 0) passing.end();
  });
}

/** All of it; of a body that is announced as huge, what comes first. */
async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  if (Number(message.headers['content-length'] ?? 0) > 1e9) {
    const [first] = (await once(message, 'data')) as [Buffer];
    return first;
  }
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function streamEvents(
  message: IncomingMessage,
  outgoing: ServerResponse,
  { event, frame: other, ending = {} }: Fault,
): Promise<void> {
  let rest = '';
  let index = 0;
  const change = (frame: string): string[] => {
    if (!/^data:/m.test(frame)) return other?.(frame) ?? [frame];
    return event?.(frame, index++) ?? [frame];
  };
  outgoing.flushHeaders();
  try {
    for await (const chunk of message) {
      const frames = (rest + (chunk as Buffer).toString('latin1')).split('\n\n');
      rest = frames.pop() ?? '';
      const text = frames.flatMap(change).map((frame) => `${frame}\n\n`);
      if (!outgoing.write(Buffer.from(text.join(''), 'latin1'))) await once(outgoing, 'drain');
    }
  } catch {
    // Cut by the broker, or by the reader: what came whole is passed on.
  }
  const isProper = message.complete ? ending.end !== 'cut' : ending.cut === 'end';
  if (isProper) outgoing.end();
  else outgoing.socket?.end(() => outgoing.destroy());
}

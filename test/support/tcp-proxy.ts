import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between a client and the broker and breaks connections as a bad network does. */
export class TcpProxy {
  /** The first bytes of each connection, which hold the head of its request, in the order in which they came. */
  readonly requestHeads: string[] = [];
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  /** Connections that were cut because of their bytes. */
  cuts = 0;
  #ofRequest = false;
  #isStalled = false;
  #isHeld = false;
  #pickBytes: () => number = () => Number.POSITIVE_INFINITY;

  private constructor(targetPort: number) {
    this.#server = createServer((client) =>
      this.#join(client, connect({ host: '127.0.0.1', port: targetPort })),
    );
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** From now on each new connection is cut when so many bytes have come from the broker. */
  cutAfterBytes(bytes: number): void {
    this.cutEachAfter(() => bytes);
  }

  /** The same, with a number of bytes for each connection, counted anew from each request on it where that is said. */
  cutEachAfter(pickBytes: () => number, { ofRequest = false } = {}): void {
    this.#pickBytes = pickBytes;
    this.#ofRequest = ofRequest;
  }

  /** Cuts all that is open, at once and on both sides. */
  cutAll(): void {
    for (const pair of this.#pairs) this.#cut(pair);
  }

  /** Takes nothing more from the broker, until `flow`: its clients are slow. */
  stall(): void {
    this.#isStalled = true;
    for (const [, broker] of this.#pairs) broker.pause();
  }

  flow(): void {
    this.#isStalled = false;
    for (const [, broker] of this.#pairs) broker.resume();
  }

  /** Nothing passes either way, until `release`, and no connection ends by it. */
  hold(): void {
    this.#isHeld = true;
    for (const pair of this.#pairs) this.#holdPair(pair);
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    for (const [client, broker] of this.#pairs) {
      client.pipe(broker);
      if (!this.#isStalled) broker.resume();
    }
  }

  async stop(): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket, broker: Socket): void {
    const pair: [Socket, Socket] = [client, broker];
    this.#pairs.add(pair);
    let left = this.#pickBytes();
    for (const socket of pair) {
      socket.on('error', () => this.#cut(pair));
      socket.on('close', () => this.#cut(pair));
    }
    client.once('data', (chunk) => this.requestHeads.push(chunk.toString('latin1')));
    client.on('data', () => {
      if (this.#ofRequest) left = this.#pickBytes();
    });
    client.pipe(broker);
    broker.on('data', (chunk) => {
      const passed = chunk.subarray(0, Math.min(left, chunk.length));
      left -= passed.length;
      client.write(passed, () => {
        if (left > 0) return;
        if (this.#pairs.has(pair)) this.cuts++;
        this.#cut(pair);
      });
    });
    if (this.#isStalled) broker.pause();
    if (this.#isHeld) this.#holdPair(pair);
  }

  #holdPair([client, broker]: [Socket, Socket]): void {
    client.unpipe(broker).pause();
    broker.pause();
  }

  #cut(pair: [Socket, Socket]): void {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { request } from './http.js';

/**
 * Stands before several brokers as a balancer of TCP does. A connection goes to the first that says `/readyz`, or to one
 * after the other of those; where none does, to the first that takes it, for one that drains still answers publishers; where none does, it is closed.
 */
export class TcpBalancer {
  /** Ports of the brokers, in the order in which they are preferred. */
  targets: readonly number[] = [];
  /** Whether connections are spread over all that are ready. */
  spreads = false;
  #connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((client) => void this.#join(client));
  }

  static async start(): Promise<TcpBalancer> {
    const balancer = new TcpBalancer();
    balancer.#server.listen(0, '127.0.0.1');
    await once(balancer.#server, 'listening');
    return balancer;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #join(client: Socket): Promise<void> {
    this.#hold(client);
    const broker = await this.#connection();
    if (broker === null) {
      client.destroy();
      return;
    }
    this.#hold(broker);
    client.on('close', () => broker.destroy());
    broker.on('close', () => client.end());
    client.pipe(broker).pipe(client);
  }

  /** To one that is ready, or else to one that is there. */
  async #connection(): Promise<Socket | null> {
    const isReady = (port: number): Promise<boolean> =>
      request(port, { path: '/readyz' }).then(
        ({ status }) => status === 200,
        () => false,
      );
    const ready = await Promise.all(this.targets.map(isReady));
    const isReadyAt = this.targets.filter((_, at) => ready[at]);
    const turn = this.spreads && isReadyAt.length > 0 ? this.#connections++ % isReadyAt.length : 0;
    const ordered = [
      ...isReadyAt.slice(turn),
      ...isReadyAt.slice(0, turn),
      ...this.targets.filter((_, at) => !ready[at]),
    ];
    for (const port of ordered) {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      const isConnected = await once(socket, 'connect').then(
        () => true,
        () => false,
      );
      if (isConnected) return socket;
    }
    return null;
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

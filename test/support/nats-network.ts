import type { TestContext } from 'node:test';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { eventually } from './deadline.js';
import { freePort } from './free-port.js';
import { NatsServer } from './nats-server.js';
import { TcpProxy } from './tcp-proxy.js';

const SERVERS = [0, 1, 2];

/** Three NATS servers that replicate among each other, over a network that can be broken between any two of them. */
export class NatsNetwork {
  readonly servers: NatsServer[] = [];
  readonly #statusPorts: number[] = [];
  /** By server, and by who connects to it. */
  readonly #ways: TcpProxy[][] = [];

  static async start(context: TestContext): Promise<NatsNetwork> {
    const network = new NatsNetwork();
    const ports = await Promise.all(SERVERS.map(freePort));
    network.#statusPorts.push(...(await Promise.all(SERVERS.map(freePort))));
    for (const port of ports) {
      const ways = await Promise.all(SERVERS.map(() => TcpProxy.start(port)));
      for (const way of ways) context.after(() => way.stop());
      network.#ways.push(ways);
    }
    const servers = SERVERS.map((own) => {
      const routes = SERVERS.filter((at) => at !== own).map((at) => network.#ways[at]?.[own]?.port);
      const urls = routes.map((port) => `"nats://127.0.0.1:${port}"`).join(', ');
      // What they tell each other of addresses leads nowhere, so that they have no other ways.
      const told = 'advertise: "127.0.0.1:1", no_advertise: true';
      const cluster = `name: test, listen: "127.0.0.1:${ports[own]}", ${told}, routes: [${urls}]`;
      const status = `http: "127.0.0.1:${network.#statusPorts[own]}"`;
      return NatsServer.start(context, `server_name: n${own}\n${status}\ncluster { ${cluster} }`);
    });
    network.servers.push(...(await Promise.all(servers)));
    return network;
  }

  get url(): string {
    return this.servers.map(({ url }) => url).join(',');
  }

  /** Nothing passes between two servers, and neither is told. */
  hold(one: number, other: number): void {
    this.#ways[one]?.[other]?.hold();
    this.#ways[other]?.[one]?.hold();
  }

  /** What was held arrives. */
  mend(): void {
    for (const way of this.#ways.flat()) way.release();
  }

  /** Who leads the JetStream stream, and who leads all servers, which places what is new. */
  async leaders(stream: string): Promise<{ ofStream: number; ofAll: number }> {
    return this.#manage((manager) =>
      eventually('leaders', async () => {
        const info = await manager.streams.info(stream).catch(() => null);
        const status = await fetch(`http://127.0.0.1:${this.#statusPorts[0]}/jsz`);
        const { meta_cluster } = (await status.json()) as { meta_cluster?: { leader?: string } };
        const [ofStream, ofAll] = [info?.cluster?.leader, meta_cluster?.leader].map(numberOf);
        return ofStream !== undefined && ofAll !== undefined && { ofStream, ofAll };
      }),
    );
  }

  /** Has the one that leads a JetStream stream leave that to another one. */
  async stepDown(stream: string): Promise<void> {
    const connection = await connect({ servers: this.servers.map(({ port }) => `127.0.0.1:${port}`) });
    await connection.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`);
    await connection.close();
  }

  async #manage<T>(act: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    const connection = await connect({ servers: this.servers.map(({ port }) => `127.0.0.1:${port}`) });
    try {
      return await act(await jetstreamManager(connection, { checkAPI: false }));
    } finally {
      await connection.close();
    }
  }
}

function numberOf(name: string | undefined): number | undefined {
  return name === undefined || name === '' ? undefined : Number(name.slice(1));
}

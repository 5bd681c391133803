import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { eventually } from '../support/deadline.js';
import type { NatsServer } from '../support/nats-server.js';

const SERVERS = 3;

/** Resolves when all three servers of the log have all that it has, as one of them says that is there. */
export async function untilCaughtUp(server: NatsServer): Promise<void> {
  const connection = await connect({ servers: [`127.0.0.1:${server.port}`] });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    await eventually(
      'all servers to have caught up',
      async () => {
        const info = await manager.streams.info('GAPLESS').catch(() => null);
        const replicas = info?.cluster?.replicas ?? [];
        return (
          replicas.length === SERVERS - 1 && replicas.every(({ current, lag = 0 }) => current && lag === 0)
        );
      },
      60_000,
    );
  } finally {
    await connection.close();
  }
}

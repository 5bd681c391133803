import type { BrokerProcess } from './broker-process.js';
import { runLoad } from './load-client.js';
import type { Settings } from './settings.js';

const STREAM = 'warm-up';
const BATCH = 100;

/** The compiler inside Node is done with the hot paths before the first clock at a broker starts. */
export async function warmUp(broker: BrokerProcess, settings: Settings, core: number | null): Promise<void> {
  if (settings.warmUpMs === 0) return;
  const at = {
    port: broker.port,
    stream: STREAM,
    cpu: core ?? undefined,
    header: broker.authorization ?? undefined,
  };
  const { subscribers, publishers, warmUpMs, stormEvents } = settings;
  await runLoad('fanout', { ...at, subscribers, publishers, 'duration-ms': warmUpMs });
  await runLoad('storm', { ...at, subscribers, events: stormEvents, batch: BATCH });
  await broker.deleteStream(STREAM);
}

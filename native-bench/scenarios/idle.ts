import { IN_MEMORY } from '../brokers.js';
import { type HeldLoad, holdLoad } from '../load-client.js';
import { newStreamName, type Scenario, serverOptions } from './scenario.js';

/** So many come first and are not counted: they pay for growth of the heap that the others find done. */
const UNCOUNTED_SHARE = 0.2;

/**
 * What an idle subscriber costs the broker in resident memory, kernel not counted. The broker is a fresh one, for
 * a used one has free memory that new connections would fill unseen.
 */
export const idle: Scenario = {
  name: 'idle',
  doc: 'resident memory of an idle subscriber',
  unit: 'bytes',
  target: { kind: 'amount', atMost: 1.6 * 1024 },
  async measure(bench) {
    const { idleSubscribers } = bench.settings;
    const broker = await bench.brokers.startFresh(IN_MEMORY);
    const stream = newStreamName();
    const held: HeldLoad[] = [];
    const hold = async (subscribers: number): Promise<number> => {
      held.push(await holdLoad('idle', { ...serverOptions(bench, broker), stream, subscribers }));
      return broker.rssBytes();
    };
    try {
      const before = await hold(Math.ceil(idleSubscribers * UNCOUNTED_SHARE));
      const after = await hold(idleSubscribers);
      return {
        value: (after - before) / idleSubscribers,
        report: { subscribers: idleSubscribers, rssBeforeBytes: before, rssAfterBytes: after },
      };
    } finally {
      await Promise.all(held.map((load) => load.release()));
      await broker.stop();
    }
  },
};

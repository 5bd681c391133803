import { numberOf, runLoad } from '../load-client.js';
import type { Scenario } from './scenario.js';

/**
 * The baseline: a C process, on the broker's core, sends one frame a send(2) in a plain loop over as many
 * connections; the load client drains them on the load's core. It is what the kernel lets any server do that
 * makes a system call per event and subscriber.
 */
export const baseline: Scenario = {
  name: 'send',
  doc: 'baseline: a plain C loop of send(2), one frame a call',
  unit: 'sends/s',
  target: null,
  async measure({ settings, cores }) {
    const report = await runLoad('send', {
      subscribers: settings.subscribers,
      'duration-ms': settings.durationMs,
      'event-bytes': settings.eventBytes,
      cpu: cores?.load,
      'sender-cpu': cores?.server,
    });
    return { value: numberOf(report, 'sendsPerSecond'), report };
  },
};

import { IN_MEMORY } from '../brokers.js';
import { numberOf, runLoad } from '../load-client.js';
import { type LogPeer, nats, redis } from '../peers/logs.js';
import { nchan } from '../peers/nchan.js';
import { betterSse, nodeHttp } from '../peers/node-servers.js';
import type { Peer } from '../peers/peer.js';
import { type Bench, newStreamName, type Sample, type Scenario, type Target } from './scenario.js';

/** What each server is put through, by the same client, which knows nothing of any of them. */
interface Load {
  readonly name: string;
  readonly doc: string;
  readonly unit: string;
  readonly field: string;
  readonly optionsOf: (bench: Bench) => Readonly<Record<string, number>>;
}

const ONE: Load = {
  name: '1',
  doc: 'one closed-loop publisher',
  unit: 'deliveries/s',
  field: 'deliveriesPerSecond',
  optionsOf: ({ settings }) => ({ subscribers: settings.subscribers, publishers: 1, rate: 0 }),
};

const MANY: Load = {
  name: '32',
  doc: '32 closed-loop publishers',
  unit: 'deliveries/s',
  field: 'deliveriesPerSecond',
  optionsOf: ({ settings }) => ({
    subscribers: settings.subscribers,
    publishers: settings.publishers,
    rate: 0,
  }),
};

const LATENCY: Load = {
  name: 'p99',
  doc: 'p99 of a delivery at a fixed rate',
  unit: 'us',
  field: 'deliveryP99Us',
  optionsOf: ({ settings }) => ({
    subscribers: settings.liveSubscribers,
    publishers: settings.publishers,
    rate: settings.liveRate,
  }),
};

const PUBLISH: Load = {
  name: 'publish',
  doc: '32 closed-loop publishers, one subscriber',
  unit: 'publishes/s',
  field: 'publishesPerSecond',
  optionsOf: ({ settings }) => ({ subscribers: 1, publishers: settings.publishers, rate: 0 }),
};

interface Place {
  readonly pid: number;
  readonly port: number;
  readonly publishPath: string;
  readonly subscribePath: string;
}

async function measureAt(bench: Bench, load: Load, place: Place): Promise<Sample> {
  const report = await runLoad('peer', {
    port: place.port,
    'server-pids': place.pid,
    cpu: bench.cores?.load,
    'event-bytes': bench.settings.eventBytes,
    'publish-path': place.publishPath,
    'subscribe-path': place.subscribePath,
    'duration-ms': bench.settings.durationMs,
    ...load.optionsOf(bench),
  });
  return { value: numberOf(report, load.field), report };
}

function ofPeer(peer: Peer, load: Load): Scenario {
  return {
    name: `${peer.name}-${load.name}`,
    doc: `${peer.name}: ${load.doc}`,
    unit: load.unit,
    target: null,
    async measure(bench) {
      const { pid, port } = await bench.peers.running(peer);
      const topic = newStreamName().replace('-', '');
      return measureAt(bench, load, {
        pid,
        port,
        publishPath: `/pub/${topic}`,
        subscribePath: `/sub/${topic}`,
      });
    },
  };
}

function ofBroker(load: Load, target: Target | null): Scenario {
  return {
    name: `gapless-${load.name}`,
    doc: `this broker: ${load.doc}`,
    unit: load.unit,
    target,
    async measure(bench) {
      const { pid, port } = await bench.brokers.shared(IN_MEMORY);
      const path = `/v1/streams/${newStreamName()}`;
      return measureAt(bench, load, {
        pid,
        port,
        publishPath: path,
        subscribePath: `${path}?cursor=latest`,
      });
    },
  };
}

function ofLog(peer: LogPeer): Scenario {
  return {
    name: `${peer.name}-publish`,
    doc: `${peer.name}: 32 closed-loop publishers, in memory`,
    unit: 'publishes/s',
    target: null,
    async measure(bench) {
      const { settings, cores } = bench;
      const { pid, port } = await bench.peers.running(peer, (at) => peer.prepare(at));
      const report = await runLoad('ask', {
        port,
        'server-pids': pid,
        cpu: cores?.load,
        publishers: settings.publishers,
        'duration-ms': settings.durationMs,
        ...peer.requests('x'.repeat(settings.eventBytes)),
      });
      return { value: numberOf(report, 'publishesPerSecond'), report };
    },
  };
}

/** Those that can run here, each beside this broker; and what is missing for the others. */
export function peerScenarios(): { scenarios: Scenario[]; missing: string[] } {
  const missing: string[] = [];
  const isHere = (peer: Peer) => {
    const what = peer.missing();
    if (what !== null) missing.push(`${peer.name}: ${what}`);
    return what === null;
  };
  const scenarios: Scenario[] = [];
  if (isHere(nchan)) {
    scenarios.push(
      ofBroker(ONE, { kind: 'atLeast', times: 1.7, of: ofPeer(nchan, ONE) }),
      ofBroker(MANY, { kind: 'atLeast', times: 30, of: ofPeer(nchan, MANY) }),
      ofBroker(LATENCY, { kind: 'atMost', times: 1, of: ofPeer(nchan, LATENCY) }),
      ofBroker(PUBLISH, { kind: 'atLeast', times: 0.9, of: ofPeer(nchan, PUBLISH) }),
    );
  } else {
    scenarios.push(...[ONE, MANY, LATENCY, PUBLISH].map((load) => ofBroker(load, null)));
  }
  for (const peer of [nodeHttp, betterSse].filter(isHere)) {
    scenarios.push(...[ONE, MANY, LATENCY, PUBLISH].map((load) => ofPeer(peer, load)));
  }
  scenarios.push(...[redis, nats].filter(isHere).map(ofLog));
  return { scenarios, missing };
}

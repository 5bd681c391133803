import { type BrokerSetup, IN_MEMORY, SHORT_LIVED } from '../brokers.js';
import { LoadError, numberOf, type PeerMode, runLoad } from '../load-client.js';
import { Attempts } from '../peers/attempts.js';
import { type LogPeer, nats, redis } from '../peers/logs.js';
import { nchan } from '../peers/nchan.js';
import { betterSse, nodeHttp } from '../peers/node-servers.js';
import type { Peer, RunningPeer } from '../peers/peer.js';
import { pushpin } from '../peers/pushpin.js';
import type { Place, ServerPeer } from '../peers/server-peer.js';
import { type Bench, newStreamName, type Sample, type Scenario, type Target } from './scenario.js';

/** What each server is put through, by the same client, which knows nothing of any of them. */
interface Load {
  readonly name: string;
  readonly doc: string;
  readonly unit: string;
  readonly field: string;
  readonly mode?: PeerMode;
  readonly optionsOf: (bench: Bench) => Readonly<Record<string, number>>;
  /** How this broker is set up for it; in memory unless said. */
  readonly setup?: BrokerSetup;
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

/** Nchan counts the messages of a second and channel in 16 bits, and delivers none after 32 767. */
const PUBLISH_STREAMS = 4;

const PUBLISH: Load = {
  name: 'publish',
  doc: `32 closed-loop publishers, ${PUBLISH_STREAMS} streams with a subscriber each`,
  unit: 'publishes/s',
  field: 'publishesPerSecond',
  optionsOf: ({ settings }) => ({
    streams: PUBLISH_STREAMS,
    subscribers: PUBLISH_STREAMS,
    publishers: settings.publishers,
    rate: 0,
  }),
};

const STREAMS: Load = {
  name: 'streams',
  doc: 'thousands of streams with a subscriber each, 32 closed-loop publishers',
  unit: 'deliveries/s',
  field: 'deliveriesPerSecond',
  optionsOf: ({ settings }) => ({
    streams: settings.peerStreams,
    subscribers: settings.peerStreams,
    publishers: settings.publishers,
    rate: 0,
  }),
  setup: SHORT_LIVED,
};

const STORM: Load = {
  name: 'storm',
  doc: 'all come at once for what is there from the beginning',
  unit: 'deliveries/s',
  field: 'deliveriesPerSecond',
  mode: 'peer-storm',
  optionsOf: ({ settings }) => ({
    subscribers: settings.subscribers,
    publishers: settings.publishers,
    events: settings.stormEvents,
  }),
};

type Server = Pick<RunningPeer, 'pids' | 'port' | 'publishPort'>;

async function measureAt(bench: Bench, load: Load, server: Server, place: Place): Promise<Sample> {
  const { mode = 'peer' } = load;
  const report = await runLoad(mode, {
    port: server.port,
    'publish-port': server.publishPort,
    'server-pids': server.pids.join(','),
    cpu: bench.cores?.load,
    'event-bytes': bench.settings.eventBytes,
    'publish-path': place.publishPath,
    'subscribe-path': mode === 'peer' ? place.subscribePath : place.replayPath,
    'body-before': place.body?.before,
    'body-after': place.body?.after,
    opening: place.opening,
    'duration-ms': bench.settings.durationMs,
    ...load.optionsOf(bench),
  });
  return { value: numberOf(report, load.field), report };
}

/** Nothing is counted yet, so nothing is lost either. */
async function warmUpPeer(bench: Bench, load: Load, server: Server, place: Place): Promise<void> {
  const { warmUpMs } = bench.settings;
  if (warmUpMs === 0) return;
  const brief = { ...bench, settings: { ...bench.settings, durationMs: warmUpMs } };
  await measureAt(brief, load, server, place).catch((error) => {
    if (!(error instanceof LoadError)) throw error;
  });
}

function ofPeer(peer: ServerPeer, load: Load): Scenario {
  const attempts = new Attempts();
  return {
    name: `${peer.name}-${load.name}`,
    doc: `${peer.name}: ${load.doc}`,
    beside: { server: peer.name, load: load.doc },
    unit: load.unit,
    target: null,
    async measure(bench) {
      const newPlace = () => peer.place(newStreamName().replace('-', ''));
      const running = await bench.peers.running(peer, (fresh) => warmUpPeer(bench, load, fresh, newPlace()));
      return attempts.measure(() => measureAt(bench, load, running, newPlace()), bench.settings.peerRestMs);
    },
  };
}

function ofBroker(load: Load, target: Target | null): Scenario {
  return {
    name: `gapless-${load.name}`,
    doc: `this broker: ${load.doc}`,
    beside: { server: 'gapless', load: load.doc },
    unit: load.unit,
    target,
    async measure(bench) {
      const { pid, port } = await bench.brokers.shared(load.setup ?? IN_MEMORY);
      const path = `/v1/streams/${newStreamName()}-@`;
      const place = {
        publishPath: path,
        subscribePath: `${path}?cursor=latest`,
        replayPath: `${path}?cursor=earliest`,
      };
      return measureAt(bench, load, { pids: [pid], port }, place);
    },
  };
}

function ofLog(peer: LogPeer): Scenario {
  const attempts = new Attempts();
  return {
    name: `${peer.name}-publish`,
    doc: `${peer.name}: 32 closed-loop publishers, in memory`,
    beside: { server: peer.name, load: PUBLISH.doc },
    unit: 'publishes/s',
    target: null,
    async measure(bench) {
      const running = await bench.peers.running(peer, (fresh) => peer.prepare(fresh.port));
      return attempts.measure(() => measureLog(bench, peer, running), bench.settings.peerRestMs);
    },
  };
}

async function measureLog(
  { settings, cores }: Bench,
  peer: LogPeer,
  { pids, port }: Server,
): Promise<Sample> {
  const report = await runLoad('ask', {
    port,
    'server-pids': pids.join(','),
    cpu: cores?.load,
    publishers: settings.publishers,
    'duration-ms': settings.durationMs,
    ...peer.requests('x'.repeat(settings.eventBytes)),
  });
  return { value: numberOf(report, 'publishesPerSecond'), report };
}

/** What this broker is held to beside Nchan. */
const BESIDE_NCHAN: readonly (readonly [Load, 'atLeast' | 'atMost', number])[] = [
  [ONE, 'atLeast', 1.7],
  [MANY, 'atLeast', 30],
  [LATENCY, 'atMost', 1],
  [STORM, 'atLeast', 80],
  [STREAMS, 'atLeast', 1],
  [PUBLISH, 'atLeast', 0.9],
];

/** What each of the others is put through. Pushpin answers a publish before it delivers, and loses what is too much. */
const OTHERS: readonly (readonly [ServerPeer, readonly Load[]])[] = [
  [pushpin, [ONE, MANY, LATENCY]],
  [nodeHttp, [ONE, MANY, LATENCY, PUBLISH]],
  [betterSse, [ONE, MANY, LATENCY, PUBLISH]],
];

/** Those that can run here, each beside this broker; and what is missing for the others. */
export function peerScenarios(): { scenarios: Scenario[]; missing: string[] } {
  const missing: string[] = [];
  const isHere = (peer: Peer) => {
    const what = peer.missing();
    if (what !== null) missing.push(`${peer.name}: ${what}`);
    return what === null;
  };
  const hasNchan = isHere(nchan);
  const scenarios: Scenario[] = BESIDE_NCHAN.map(([load, kind, times]) =>
    ofBroker(load, hasNchan ? { kind, times, of: ofPeer(nchan, load) } : null),
  );
  for (const [peer, loads] of OTHERS) {
    if (isHere(peer)) scenarios.push(...loads.map((load) => ofPeer(peer, load)));
  }
  scenarios.push(...[redis, nats].filter(isHere).map(ofLog));
  return { scenarios, missing };
}

/**
 * What Prometheus scrapes. Nothing is counted here: the edges count in shared memory, the streams' positions are
 * where they are, and all of it is read when a scrape comes.
 */

import { collectDefaultMetrics, Gauge, Counter as PromCounter, Registry } from 'prom-client';
import type { StreamState } from '../broker/directory.js';
import type { StreamLag } from '../broker/lag.js';
import type { FrontCounts } from '../mcp/front-counts.js';
import type { Arena } from '../ring/arena.js';
import { CounterHistogram, type Counters } from '../ring/counters.js';
import { type LogSources, registerLogMetrics } from './log-metrics.js';
import { registerMcpMetrics } from './mcp-metrics.js';
import { CATCH_UP, COMPUTED, LOOP_DELAY, STREAM_METRICS, SUBSCRIBER_LAG, WORD_METRICS } from './names.js';
import { type PrefixSources, registerPrefixMetrics } from './prefix-metrics.js';
import { addUp, SharedHistogram } from './shared-histogram.js';
import { StreamPicker } from './stream-picker.js';

export interface MetricsSources {
  readonly counters: readonly Counters[];
  readonly arena: Arena;
  readonly directory: {
    states(): Iterable<StreamState>;
    readonly size: number;
    readonly evictedEvents: number;
  };
  readonly named: {
    readonly size: number;
    readonly acknowledgements: number;
    lag(state: StreamState): number;
  };
  readonly prefixCursors: PrefixSources;
  /** How far behind the readers are, from all edges. */
  readonly lags: () => Promise<StreamLag[]>;
  /** What happened that people who look on were not shown. */
  readonly activity: { readonly missed: number };
  /** Streams with series of their own: names, or prefixes with a final `*`. */
  readonly streamPatterns: readonly string[];
  /** How many streams get series of their own because their lag is largest. */
  readonly streamsTop: number;
  /** Null without a durable log. */
  readonly log: LogSources | null;
  /** Null without a front of MCP servers. */
  readonly mcp: FrontCounts | null;
}

type Family = keyof typeof COMPUTED | keyof typeof STREAM_METRICS;

export class Metrics {
  readonly #sources: MetricsSources;
  readonly #registry = new Registry();
  readonly #picker: StreamPicker;
  readonly #set = new Map<Family, Gauge<'stream'> | PromCounter>();

  constructor(sources: MetricsSources) {
    this.#sources = sources;
    this.#picker = new StreamPicker(sources.streamPatterns, sources.streamsTop);
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    for (const metric of WORD_METRICS) registerWords(metric, sources.counters, registers);
    registerLoopDelay(sources.counters, registers);
    registerLag(sources.counters, this.#registry);
    if (sources.log !== null) {
      registerLogMetrics(sources.log, this.#registry);
      registerCatchUp(sources.counters, this.#registry);
    }
    registerPrefixMetrics(sources.prefixCursors, this.#registry);
    if (sources.mcp !== null) registerMcpMetrics(sources.mcp, this.#registry);
    for (const [family, { name, help }] of Object.entries(COMPUTED)) {
      const Kind = name.endsWith('_total') ? PromCounter : Gauge;
      this.#set.set(family as Family, new Kind({ name, help, registers }));
    }
    for (const [family, { name, help }] of Object.entries(STREAM_METRICS)) {
      this.#set.set(family as Family, new Gauge({ name, help, labelNames: ['stream'], registers }));
    }
  }

  /** The exposition text, and its content type. */
  async render(): Promise<{ contentType: string; text: string }> {
    this.#computeArena();
    this.#computeStreams(await this.#sources.lags());
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  #computeArena(): void {
    const { arena } = this.#sources;
    const { usedBytes, refusals } = arena.usage();
    this.#show('arenaCapacity', arena.capacityBytes);
    this.#show('arenaUsed', usedBytes);
    this.#show('arenaRefusals', refusals);
    this.#show('producerMemory', arena.tableBytes);
  }

  #computeStreams(lags: readonly StreamLag[]): void {
    const { directory, named } = this.#sources;
    for (const family of Object.keys(STREAM_METRICS)) (this.#set.get(family as Family) as Gauge).reset();
    const picked = this.#picker.pick(lags);
    let retainedEvents = 0;
    let retainedBytes = 0;
    let committedEvents = 0;
    let headEvents = 0;
    for (const state of directory.states()) {
      const { floor, committed, head, bytes } = state.positions;
      retainedEvents += head - floor + 1;
      retainedBytes += bytes;
      committedEvents += committed;
      headEvents += head;
      if (picked.has(state.ref.name)) this.#showStream(state, picked.lagOf(state.ref.name));
    }
    this.#show('streams', directory.size);
    this.#show('retainedEvents', retainedEvents);
    this.#show('retainedBytes', retainedBytes);
    this.#show('committedEvents', committedEvents);
    this.#show('headEvents', headEvents);
    this.#show('evictedEvents', directory.evictedEvents);
    this.#show('activityMissed', this.#sources.activity.missed);
    this.#show('namedSubscribers', named.size);
    this.#show('acknowledgements', named.acknowledgements);
  }

  #showStream(state: StreamState, lag: number): void {
    const { ref, positions } = state;
    const { floor, committed, head, subscribers } = positions;
    const ackedLag = this.#sources.named.lag(state);
    const values = { floor, committed, head, subscribers, lag, ackedLag };
    for (const [family, value] of Object.entries(values)) {
      (this.#set.get(family as Family) as Gauge<'stream'>).set({ stream: ref.name }, value);
    }
  }

  #show(family: keyof typeof COMPUTED, value: number): void {
    const metric = this.#set.get(family) as Gauge | PromCounter;
    metric.reset();
    metric.inc(value);
  }
}

function registerWords(
  { name, help, type, words }: (typeof WORD_METRICS)[number],
  counters: readonly Counters[],
  registers: Registry[],
): void {
  const total = (index: number): number => counters.reduce((sum, block) => sum + block.get(index), 0);
  const Kind = type === 'counter' ? PromCounter : Gauge;
  new Kind({
    name,
    help,
    registers,
    labelNames: typeof words === 'number' ? [] : [words.label],
    collect() {
      this.reset();
      if (typeof words === 'number') return this.inc(total(words));
      for (const [value, index] of Object.entries(words.values))
        this.inc({ [words.label]: value }, total(index));
    },
  });
}

function registerLag(counters: readonly Counters[], registry: Registry): void {
  const { lagWritten, lagDelivered } = CounterHistogram;
  const series = () =>
    Object.entries({ written: lagWritten, delivered: lagDelivered }).map(([position, histogram]) =>
      addUp(
        { position },
        counters.map((block) => block.observed(histogram)),
      ),
    );
  registry.registerMetric(new SharedHistogram(SUBSCRIBER_LAG, lagWritten.bounds, series));
}

function registerCatchUp(counters: readonly Counters[], registry: Registry): void {
  const { catchUpSeconds } = CounterHistogram;
  const series = () => [
    addUp(
      {},
      counters.map((block) => block.observed(catchUpSeconds)),
    ),
  ];
  registry.registerMetric(new SharedHistogram(CATCH_UP, catchUpSeconds.bounds, series));
}

function registerLoopDelay(counters: readonly Counters[], registers: Registry[]): void {
  const { name, help, words } = LOOP_DELAY;
  new Gauge({
    name,
    help,
    registers,
    labelNames: ['edge', 'quantile'],
    collect() {
      for (const [edge, block] of counters.entries()) {
        for (const [quantile, index] of Object.entries(words)) {
          this.set({ edge: String(edge), quantile }, block.get(index));
        }
      }
    },
  });
}
